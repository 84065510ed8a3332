# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `watch` tells Prometheus: a text file for node_exporter, which needs no socket, or HTTP on an address of one's choice."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from typing import Any

from headwaiter.base.errors import Problem
from headwaiter.base.outputs import writing

MOST_PEERS = 16
PATIENCE_S = 5.0
"""A peer that says nothing, or takes nothing, for so long is left."""
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
FAMILIES = {
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
    _changing: threading.Lock = field(default_factory=threading.Lock)
    """They are read while they change: by the threads that serve them."""

    def set(self, family: str, value: float, **labels: str) -> None:
        """A gauge."""
        with self._changing:
            self.values.setdefault(family, {})[tuple(sorted(labels.items()))] = value

    def add(self, family: str, value: float = 1, **labels: str) -> None:
        """A counter."""
        key = tuple(sorted(labels.items()))
        with self._changing:
            found = self.values.setdefault(family, {})
            found[key] = found.get(key, 0) + value

    def only(self, family: str, value: float, device: str, **labels: str) -> None:
        """A gauge of a device whose other labels may change: those before go."""
        with self._changing:
            others = {key: old for key, old in self.values.get(family, {}).items() if ("device", device) not in key}
            self.values[family] = {**others, tuple(sorted({"device": device, **labels}.items())): value}

    def drop(self, family: str, device: str) -> None:
        """A gauge of a device of which nothing is known now."""
        with self._changing:
            self.values[family] = {key: old for key, old in self.values.get(family, {}).items() if ("device", device) not in key}

    def text(self) -> str:
        """Return the text that Prometheus reads."""
        lines = []
        with self._changing:
            now = {family: dict(found) for family, found in self.values.items()}
        for family, (kind, meaning) in FAMILIES.items():
            if found := now.get(family):
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


class _Server(ThreadingHTTPServer):
    """Answers each peer in a thread, MOST_PEERS at a time: for one more the one that came first has to go."""

    daemon_threads = True

    def __init__(self, family: int, address: tuple[Any, ...], metrics: Metrics) -> None:
        self.address_family = family
        self.metrics = metrics
        self._peers: list[socket.socket] = []
        self._changing = threading.Condition()
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        """Without HTTPServer's look-up of the host's name, which may take long."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]

    def process_request(self, request: Any, client_address: Any) -> None:
        """See BaseServer."""
        with self._changing:
            while len(self._peers) >= MOST_PEERS:
                with suppress(OSError):
                    self._peers[0].shutdown(socket.SHUT_RDWR)  # its thread ends, and closes it
                self._changing.wait(PATIENCE_S)
            self._peers.append(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """See BaseServer."""
        with self._changing:
            super().shutdown_request(request)
            if request in self._peers:
                self._peers.remove(request)
            self._changing.notify()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Quiet: peers that go, or say nothing, are no trouble of the watch."""


class _Handler(BaseHTTPRequestHandler):
    """Answers to GET /metrics."""

    timeout = PATIENCE_S

    def do_GET(self) -> None:
        """See BaseHTTPRequestHandler."""
        assert isinstance(self.server, _Server)
        known = self.path == "/metrics"
        body = self.server.metrics.text().encode() if known else b"/metrics\n"
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


@contextmanager
def served(metrics: Metrics, address: str) -> Iterator[int]:
    """Serve them at HOST:PORT, or [ADDRESS]:PORT of IPv6, path /metrics; the port. Problem if that is not possible."""
    host, _, port = address.rpartition(":")
    if not host or not (port.isascii() and port.isdecimal()) or int(port) > 65535:
        raise Problem(f"--metrics-http {address}: expected HOST:PORT")
    try:
        found = socket.getaddrinfo(host.removeprefix("[").removesuffix("]"), int(port), type=socket.SOCK_STREAM)
        server = _Server(found[0][0], found[0][4], metrics)
    except OSError as e:
        raise Problem(f"--metrics-http {address}: {e.strerror}") from None
    except UnicodeError:
        raise Problem(f"--metrics-http {address}: expected HOST:PORT") from None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
