# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The drive model against DiskSim's service times and against real drives (recorded data; skipped where it is absent)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headwaiter.drives.convert import convert
from headwaiter.drives.profile import Profile, from_toml
from headwaiter.drives.validation import read_trace, replay, validate

# First ten service times in ms of DiskSim 4.0 in a closed loop (../shared/spec/disksim_parameters.md, section 4).
FIRST_TEN = {
    "cheetah9LP": "8.0863 3.2104 11.3275 2.4878 3.3091 8.2162 0.4860 2.0080 3.0429 1.1680",
    "hp_c2247a": "21.6493 1.3755 1.3755 17.1551 10.2148 20.4933 27.9879 16.8112 13.5700 14.2371",
    "hp_c3323a": "20.3615 27.9470 29.3664 13.1575 13.5424 22.1320 1.8985 1.8985 13.5747 10.9598",
    "dec_rz26": "18.4056 28.7079 23.1285 28.3880 17.8852 11.0258 16.0382 2.0066 18.9572 10.1915",
    "barracuda": "21.6505 0.6180 2.0820 17.8716 0.6180 15.6474 1.5460 19.6146 0.6180 1.5460",
    "atlas_III": "1.6860 12.9506 14.4488 3.9448 3.3558 2.1100 1.7772 14.5565 8.2084 0.8380",
}
# DiskSim's demerit figures by exact quantiles in ms (../shared/data/drives/README.md).
DISKSIM_DEMERIT = {
    "cheetah9LP": 0.108,
    "hp_c2247a": 0.098,
    "hp_c3323a": 0.286,
    "dec_rz26": 0.340,
    "barracuda": 0.348,
    "atlas_III": 0.378,
}


# With the project's own rules (../shared/spec/drive_rules.md, the last column of its table): demerit, mean absolute error, ms.
# The Atlas III: with the rule for reads in sequence, which was found later.
WITH_RULES = {
    "cheetah9LP": (0.100, 1.02),
    "hp_c2247a": (0.094, 0.57),
    "hp_c3323a": (0.260, 2.88),
    "dec_rz26": (0.314, 1.62),
    "barracuda": (0.213, 1.43),
    "atlas_III": (0.195, 1.79),
}


def converted(shared: Path, drive: str, as_disksim: bool = False) -> Profile:
    data, name = convert(shared / "data" / "drives" / drive / f"{drive}.parv", as_disksim)
    return from_toml(data, name, drive)


@pytest.mark.parametrize("drive", FIRST_TEN)
def test_first_ten_service_times_are_disksims(shared: Path, drive: str) -> None:
    trace = read_trace(shared / "data" / "drives" / drive / f"{drive}.trace")
    times = replay(converted(shared, drive, as_disksim=True), trace)[:10] / 1e6
    np.testing.assert_allclose(times, [float(t) for t in FIRST_TEN[drive].split()], atol=0.001)


@pytest.mark.parametrize("drive", DISKSIM_DEMERIT)
def test_parameters_taken_as_disksim_does_give_its_demerit(shared: Path, drive: str) -> None:
    trace = read_trace(shared / "data" / "drives" / drive / f"{drive}.trace")
    found = validate(converted(shared, drive, as_disksim=True), trace, drive).demerit_ms
    assert found == pytest.approx({**DISKSIM_DEMERIT, "hp_c2247a": 0.094}[drive], abs=0.0011)


@pytest.mark.parametrize("drive", DISKSIM_DEMERIT)
def test_demerit_is_that_of_the_rules_and_at_most_disksims(shared: Path, drive: str) -> None:
    trace = read_trace(shared / "data" / "drives" / drive / f"{drive}.trace")
    found = validate(converted(shared, drive), trace, drive)
    demerit, error = WITH_RULES[drive]
    assert found.demerit_ms <= min(demerit * 1.03, DISKSIM_DEMERIT[drive])
    assert found.mean_absolute_error_ms <= error * 1.03


def test_worked_places_of_the_cheetah(shared: Path) -> None:
    """Section 2.4 of the same document: LBN -> cylinder, head, sector; angle in sectors of the zone."""
    drive = converted(shared, "cheetah9LP")
    places = drive.locate(np.array([1_975_456, 8_702_844, 2_400_000, 3_000_000], np.uint64))
    assert places[:, 1:4].tolist() == [[648, 1, 122], [2998, 11, 80], [787, 4, 242], [990, 9, 115]]
    assert places[:, 4:6].tolist() == [[71, 254], [175, 227], [150, 254], [133, 245]]


def test_action_column_of_the_hp_c2247a_names_extra_disconnections(shared: Path) -> None:
    """Writes marked Doub or Trip are those that the extra-disconnection rule slows; the model's times tell them apart."""
    folder = shared / "data" / "drives" / "hp_c2247a"
    drive, trace = converted(shared, "hp_c2247a"), read_trace(folder / "hp_c2247a.trace")
    action = np.array([line.split()[1] for line in (folder / "hp_c2247a.trace").read_text().splitlines()])
    ended = trace.sector + trace.sectors
    writes = trace.op == 1
    random_after_write = np.r_[False, writes[:-1] & (trace.sector[1:] != ended[:-1])] & writes
    assert ((action == "Trip") | (action == "Doub"))[writes].all()
    assert (action[random_after_write] == "Trip").all()
    assert (action[writes & ~random_after_write] == "Doub").all()
    fit = np.abs(replay(drive, trace) - trace.service_ns)[random_after_write] < 300_000
    assert fit.mean() > 0.9
