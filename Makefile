# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Needs python3 with venv, and a C compiler. Everything else comes from PyPI into .venv.
PYTHON ?= python3
BIN := .venv/bin
# Every file that goes into the package: a change of any makes the installed one stale.
SOURCES := $(shell find core sim headwaiter drives workloads -type f -not -name '*.pyc') pyproject.toml meson.build meson.options

.PHONY: build demo test quick lint bench clean

build: .venv/.installed

.venv/.tools: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q --disable-pip-version-check meson ninja meson-python \
		numpy cffi click rich tomli-w zstandard pytest hypothesis matplotlib ruff mypy types-cffi
	touch $@

.venv/.installed: .venv/.tools $(SOURCES)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/pip install -q --disable-pip-version-check --no-build-isolation --no-deps \
		--force-reinstall -Cbuild-dir=build/wheel .
	touch $@

build/c/build.ninja: .venv/.tools
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/meson setup build/c -Dwarning_level=2 >/dev/null

.PHONY: c-test
c-test: build/c/build.ninja
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/meson test -C build/c --print-errorlogs -q

quick: build c-test
	$(BIN)/pytest -m "not slow"

lint: build
	$(BIN)/ruff check headwaiter tests
	$(BIN)/mypy

test: build c-test
	$(BIN)/pytest
