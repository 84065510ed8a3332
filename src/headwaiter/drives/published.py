# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Published measurements of drives: tables of facts, which study/published.py holds against the simulator.

Ren, Doekemeijer, De Matteis, Pinto, Stoica, Trivedi: "BFQ, Multiqueue-Deadline, or Kyber? Performance Characterization of Linux
Storage Schedulers in the NVMe Era", ICPE 2024 (figures of its artefact, stonet-research/icpe24_io_scheduler_study_artifact):
random reads of 4 KiB by fio with io_uring, one Samsung 980 PRO, 10 cores, Linux 6.3.
"""

from __future__ import annotations

from dataclasses import dataclass

DRIVE_980_PRO = "samsung-980-pro"
"""The profile that these figures are for."""


@dataclass(frozen=True)
class Fact:
    """A published number, and the simulator's. allowed: how far off it may be, as a share."""

    figure: str
    what: str
    scheduler: str
    unit: str
    published: float
    simulated: float
    allowed: float

    @property
    def off(self) -> float:
        """By which share the simulator's differs."""
        return self.simulated / self.published - 1

    @property
    def holds(self) -> bool:
        """Whether that is little enough."""
        return abs(self.off) <= self.allowed


# Thousands of reads a second, of so many processes with 128 reads under way each, one core a process.
PROCESSES_7 = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
FIGURE_7 = {
    "none": (381, 727, 786, 784, 778, 777, 778, 777, 776, 776, 776, 776, 776, 776, 775),
    "mq-deadline": (310, 505, 569, 499, 488, 467, 474, 492, 471, 470, 462, 476, 476, 474, 477),
    "kyber": (304, 605, 787, 786, 782, 778, 777, 775, 774, 774, 773, 775, 773, 773, 773),
    "bfq": (241, 294, 310, 309, 315, 301, 276, 277, 271, 274, 272, 270, 273, 274, 273),
}

# Mean latency, microseconds: of one process with so many reads under way.
DEPTHS_2 = (1, 2, 4, 8, 16, 32, 64, 128, 256)
FIGURE_2 = {
    "none": (68.4, 68.7, 69.2, 70.7, 75.2, 92.7, 180.4, 360.9, 714.6),
    "mq-deadline": (70.1, 69.8, 70.1, 71.4, 76.6, 108.4, 220.4, 435.2, 866.3),
    "kyber": (70.3, 69.8, 70.1, 71.5, 77.1, 115.5, 228.3, 446.0, 930.8),
    "bfq": (71.9, 70.9, 70.9, 72.8, 80.0, 138.7, 267.4, 541.6, 1088.8),
}

# Of so many processes with one read each, on one core.
PROCESSES_3 = (1, 2, 4, 8, 16, 32, 64, 128, 256)
FIGURE_3 = {
    "none": (65.2, 62.1, 67.2, 72.6, 97.6, 209.3, 473.1, 998.5, 2121.4),
    "mq-deadline": (66.7, 63.1, 68.1, 74.0, 108.0, 234.8, 510.2, 1080.6, 2307.7),
    "kyber": (67.3, 63.2, 68.3, 74.2, 110.0, 234.6, 516.3, 1115.4, 2355.9),
    "bfq": (69.2, 64.8, 69.7, 76.8, 126.0, 265.9, 599.4, 1247.6, 2677.8),
}

# The same on ten cores.
PROCESSES_5 = (1, 2, 4, 8, 16, 32, 64, 128, 256)
FIGURE_5 = {
    "none": (54.3, 60.8, 65.0, 68.3, 73.3, 84.2, 113.1, 176.4, 329.5),
    "mq-deadline": (56.7, 62.4, 66.1, 69.3, 74.4, 85.9, 152.9, 305.5, 600.7),
    "kyber": (56.7, 62.5, 66.0, 69.2, 74.0, 85.0, 114.0, 176.9, 329.6),
    "bfq": (60.4, 64.6, 67.9, 71.6, 77.7, 117.5, 226.5, 462.4, 907.5),
}

# Thousands of reads a second, as figure 7, of another day.
PROCESSES_8 = (1, 2, 3, 4, 5, 10, 15)
FIGURE_8 = {
    "none": (377, 745, 782, 781, 779, 776, 775),
    "mq-deadline": (307, 501, 555, 508, 468, 461, 475),
    "kyber": (294, 599, 784, 786, 781, 773, 773),
    "bfq": (239, 320, 312, 293, 304, 273, 277),
}
