# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `watch` tells Prometheus: a text file for node_exporter, which needs no socket, or HTTP on an address of one's choice."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from headwaiter.errors import Problem
from headwaiter.outputs import writing

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_FAMILIES = {
    "headwaiter_scheduler_info": ("gauge", "Scheduler in force, and what the disk is."),
    "headwaiter_device_present": ("gauge", "Whether the disk is there."),
    "headwaiter_decisions_total": ("counter", "Decisions by result."),
    "headwaiter_changes_total": ("counter", "Changes of the scheduler that were made."),
    "headwaiter_predicted_gain_ratio": (
        "gauge",
        "Share of waiting that the best other scheduler would spare programs.",
    ),
    "headwaiter_contention_ratio": ("gauge", "Share of requests that found as many under way as the device takes at once."),
    "headwaiter_events_lost_total": ("counter", "Events that recordings lost."),
    "headwaiter_overridden": ("gauge", "Whether somebody else has set the scheduler, so that the disk is left alone."),
    "headwaiter_last_decision_timestamp_seconds": ("gauge", "Time of the last decision."),
}


@dataclass
class Metrics:
    """Values by family and labels."""

    values: dict[str, dict[tuple[tuple[str, str], ...], float]] = field(default_factory=dict)

    def set(self, family: str, value: float, **labels: str) -> None:
        """A gauge."""
        self.values.setdefault(family, {})[tuple(sorted(labels.items()))] = value

    def add(self, family: str, value: float = 1, **labels: str) -> None:
        """A counter."""
        found = self.values.setdefault(family, {})
        key = tuple(sorted(labels.items()))
        found[key] = found.get(key, 0) + value

    def only(self, family: str, value: float, device: str, **labels: str) -> None:
        """A gauge of a device whose other labels may change: those before go."""
        found = self.values.setdefault(family, {})
        for key in [key for key in found if ("device", device) in key]:
            del found[key]
        self.set(family, value, device=device, **labels)

    def text(self) -> str:
        """As Prometheus reads it."""
        lines = []
        for family, (kind, meaning) in _FAMILIES.items():
            if found := self.values.get(family):
                lines += [f"# HELP {family} {meaning}", f"# TYPE {family} {kind}"]
                lines += [f"{family}{_labels(dict(key))} {value:.17g}" for key, value in sorted(found.items())]
        return "\n".join(lines) + "\n"

    def write(self, path: Path) -> None:
        """For node_exporter, which must never see half of it and must be able to read it."""
        with writing(path, 0o644) as temporary:
            temporary.write_text(self.text(), encoding="utf-8")


def _labels(labels: Mapping[str, str]) -> str:
    def quoted(value: str) -> str:
        return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')

    return "{" + ",".join(f'{name}="{quoted(value)}"' for name, value in sorted(labels.items())) + "}"


@contextmanager
def served(metrics: Metrics, address: str) -> Iterator[int]:
    """Serve them at HOST:PORT, path /metrics; the port. Problem if that is not possible."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise Problem(f"--metrics-http {address}: expected HOST:PORT")

    class Handler(BaseHTTPRequestHandler):
        """Answers to GET /metrics."""

        def do_GET(self) -> None:
            """See BaseHTTPRequestHandler."""
            known = self.path == "/metrics"
            body = metrics.text().encode() if known else b"/metrics\n"
            self.send_response(200 if known else 404)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet."""

    try:
        server = ThreadingHTTPServer((host.strip("[]"), int(port)), Handler)
    except OSError as e:
        raise Problem(f"--metrics-http {address}: {e.strerror}") from None
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
