# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The kernel lab: stock Debian kernels under QEMU in virtual time, with real programs on real file systems.

`host` is what the lab needs of the machine that it runs on. `kernels` fetches kernel packages, `initramfs` packs a guest, `guest`
boots it and collects what it sends back. An experiment is a script in the project's `lab/experiments` folder; some have a half on
the host, in the room `experiments`.
"""
