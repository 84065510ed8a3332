# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What is shipped beside `watch`: alerts and a dashboard of metrics that it has, and a unit under which it can serve them."""

from __future__ import annotations

import configparser
import json
import re

import pytest
from conftest import ROOT

from headwaiter.watch.prometheus import FAMILIES, Metrics

MONITORING = ROOT / "packaging" / "monitoring"
ALERTS = (MONITORING / "alerts.yml").read_text(encoding="utf-8")
DASHBOARD = (MONITORING / "dashboard.json").read_text(encoding="utf-8")
LABELS = {"device", "instance", "result", "scheduler", "serial", "wwn"}
"""Those of the metrics (docs/watch.md), and the one that Prometheus adds."""


@pytest.mark.parametrize("text", [ALERTS, DASHBOARD], ids=["alerts", "dashboard"])
def test_every_metric_that_is_named_exists(text: str) -> None:
    assert set(re.findall(r"headwaiter_\w+", text)) <= set(FAMILIES)


def test_the_dashboard_shows_every_metric() -> None:
    assert set(re.findall(r"headwaiter_\w+", DASHBOARD)) == set(FAMILIES)


@pytest.mark.parametrize("text", [ALERTS, DASHBOARD], ids=["alerts", "dashboard"])
def test_labels_are_those_of_the_metrics(text: str) -> None:
    named = set(re.findall(r"\$labels\.(\w+)", text)) | set(re.findall(r"\{\{(\w+)\}\}", text))
    named |= {name for inside in re.findall(r"headwaiter_\w+\{(.*?)\}", text) for name in re.findall(r"(\w+)(?:=~|!=|=)", inside)}
    assert named and named <= LABELS


def test_counters_are_taken_as_rates_and_gauges_are_not() -> None:
    for text in (ALERTS, DASHBOARD):
        for function, name in re.findall(r"(\w*)\((headwaiter_\w+)", text):
            if function in ("increase", "rate", "changes"):
                assert FAMILIES[name][0] == "counter", name
        for name, (kind, _) in FAMILIES.items():
            if kind == "counter":
                assert all(before.endswith(("increase(", "changes(")) for before in text.split(name)[:-1]), name


def test_panels_lie_side_by_side() -> None:
    places = [panel["gridPos"] for panel in json.loads(DASHBOARD)["panels"]]
    cells = [(x, y) for p in places for x in range(p["x"], p["x"] + p["w"]) for y in range(p["y"], p["y"] + p["h"])]
    assert len(cells) == len(set(cells)) and all(x < 24 for x, _ in cells)


def test_documents_name_every_metric() -> None:
    said = (ROOT / "docs" / "watch.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(headwaiter_\w+)", said, re.M)) == set(FAMILIES)


def test_the_unit_lets_this_machine_ask_for_metrics_and_nobody_else() -> None:
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(ROOT / "systemd" / "headwaiter-watch.service", encoding="utf-8")
    service = unit["Service"]
    assert service.get("PrivateNetwork", "no") == "no"
    assert {"AF_UNIX", "AF_INET", "AF_INET6"} <= set(service["RestrictAddressFamilies"].split())
    assert (service["IPAddressDeny"], service["IPAddressAllow"]) == ("any", "localhost")


def test_a_metric_without_a_family_is_not_told() -> None:
    """So that a new one is not forgotten: the tests above know it only from there."""
    metrics = Metrics()
    metrics.set("headwaiter_unheard_of", 1, device="sda")
    assert metrics.text().strip() == ""
