# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Needs python3 with venv, and a C compiler. Everything else comes from PyPI into .venv.
PYTHON ?= python3
BIN := .venv/bin
MESON := PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/meson
# Every file that goes into the package: a change of any makes the installed one stale.
SOURCES := $(shell find core sim headwaiter drives workloads -type f -not -name '*.pyc') meson.build meson.options

.PHONY: all build demo test quick lint bench docs mutants c-test sanitize kmod dkms-tree clean

all: build

build: .venv/.installed

.venv/.tools: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q --disable-pip-version-check meson ninja meson-python \
		numpy cffi click rich tomli-w zstandard pytest hypothesis matplotlib ruff mypy types-cffi
	@touch $@

.venv/.installed: .venv/.tools $(SOURCES)
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/pip install -q --disable-pip-version-check --no-build-isolation --no-deps \
		--force-reinstall -Cbuild-dir=build/wheel .
	@touch $@

# The main job, on a recording of real programs on a real kernel.
demo: build
	$(BIN)/headwaiter compare

build/c/build.ninja: .venv/.tools
	$(MESON) setup build/c >/dev/null
build/sanitize/build.ninja: .venv/.tools
	$(MESON) setup build/sanitize -Db_sanitize=address,undefined -Db_lundef=false >/dev/null
build/bench/build.ninja: .venv/.tools
	$(MESON) setup build/bench --buildtype=release >/dev/null

c-test: build/c/build.ninja
	$(MESON) test -C build/c --print-errorlogs -q

# The same C tests with every memory access and every arithmetic step checked.
sanitize: build/sanitize/build.ninja
	$(MESON) test -C build/sanitize --print-errorlogs -q

quick: build c-test
	$(BIN)/pytest -m "not slow"

test: build c-test sanitize
	$(BIN)/pytest

lint: build
	$(BIN)/ruff check headwaiter tests bench docs kmod kmod/build
	$(BIN)/mypy
	$(BIN)/mypy kmod/build kmod

bench: build build/bench/build.ninja
	@$(MESON) compile -C build/bench >/dev/null
	$(BIN)/python bench/run.py build/bench/bench/bench

# Plant faults, one by one: some test must catch each.
mutants: build
	$(BIN)/python tests/mutants.py $(ONLY)

docs: build
	$(BIN)/python docs/generate.py

# Kernel modules, for the running kernel or for KERNEL=headers (and BTF=vmlinux or vmlinuz, where they are not found).
kmod:
	@kmod/build $(if $(KERNEL),--headers $(KERNEL)) $(if $(BTF),--btf $(BTF))

# The source tree that DKMS builds from: make dkms-tree DESTDIR=..., then dkms install headwaiter/0.1.0.
dkms-tree:
	mkdir -p $(DESTDIR)/usr/src/headwaiter-0.1.0
	cp -r kmod/. core $(DESTDIR)/usr/src/headwaiter-0.1.0

clean:
	rm -rf build .venv
