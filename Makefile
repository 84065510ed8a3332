# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Needs python3 with venv, and a C compiler. Everything else comes from PyPI into .venv.
PYTHON ?= python3
BIN := .venv/bin
MESON := PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/meson
# Every file that goes into the package: a change of any makes the installed one stale.
SOURCES := $(shell find core sim src package drives workloads -type f -not -name "*.pyc") meson.build meson.options

VERSION := $(shell sed -n "s/^  version: '\(.*\)',/\1/p" meson.build)
DKMS_TREE = $(DESTDIR)/usr/src/headwaiter-$(VERSION)

.PHONY: all build develop requirements wheel wheels deb test-deb test-guest test-recipes test-kernels patches demo c-test sanitize test test-python test-all test-long test-compilers \
	test-distributions lint format bench mutants mutants-changed fuzz docs man new-policy lab-docs regret-docs reproduction kmod kmod-all \
	test-kernel-debug published-docs docs-site \
	dkms-tree clean

all: build

build: .venv/.installed

# What pyproject.toml says is needed to build, to run and to develop; and to build the site, which only some do.
SITE = import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["site"], sep="\n")
REQUIRED = import tomllib; p = tomllib.load(open("pyproject.toml", "rb")); project = p["project"]; \
	extras = [one for name, extra in project["optional-dependencies"].items() if name != "site" for one in extra]; \
	print(*p["build-system"]["requires"], *project["dependencies"], *(one for one in extras if "headwaiter[" not in one), sep="\n")

# pip says nothing for minutes.
.venv/.tools: pyproject.toml
	@echo "Installing Python packages from PyPI into .venv (some minutes, once) ..." >&2
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -c '$(REQUIRED)' >.venv/requirements.txt
	@$(BIN)/pip install -q --disable-pip-version-check $(if $(REQUIREMENTS),--require-hashes -r $(REQUIREMENTS),-r .venv/requirements.txt)
	@touch $@

# The same, each in the version and with the hashes that CI takes: make build REQUIREMENTS=.ci/requirements.txt
requirements: .venv/.tools
	{ $(BIN)/python -c '$(REQUIRED)'; $(BIN)/python -c '$(SITE)'; } | $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
		--upgrade -o .ci/requirements.txt -

.venv/.installed: .venv/.tools $(SOURCES)
	@echo "Compiling headwaiter and installing it into .venv ..." >&2
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/pip install -q --disable-pip-version-check --no-build-isolation --no-deps \
		--force-reinstall --config-settings=build-dir=build/wheel .
	@touch $@

# For developers: the package is imported from the checkout, and compiled anew when a source of C has changed.
develop: .venv/.tools
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/pip install -q --disable-pip-version-check --no-build-isolation --no-deps --force-reinstall \
		--config-settings=build-dir=build/develop --editable .
	@touch .venv/.installed

wheel: .venv/.tools
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/pip wheel -q --disable-pip-version-check --no-build-isolation --no-deps -w dist .

# Wheels that install without a compiler, for x86_64 and aarch64. The compiler that makes them comes from PyPI, too (100 MB).
wheels: .venv/.tools
	@$(BIN)/pip install -q --disable-pip-version-check --no-deps --require-hashes -r packaging/requirements.txt
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python packaging/wheels

# Debian packages, into build/deb, where debhelper and the rest that packaging/debian/control asks for are installed.
deb:
	@packaging/deb

# The same in a root of Debian 13 twice, and what comes out installed into another one (root only).
test-deb:
	@packaging/test-deb

# The packages that this made, on an emulated machine with systemd, with hw-maitre for its root disk (root only, an hour).
test-guest:
	@packaging/test-guest

# Packages of other distributions, by the recipes in packaging/, in a root of Debian 13 (root only).
test-recipes:
	@packaging/test-recipes

# maitre as a series of patches to a kernel tree, into build/patches, compiled against two kernels and held against checkpatch.pl.
# KERNELS="6.12 6.1", TREE=folder with a tree to write patches for, SIGN="Name <address>", TRY=1 to run the tests.
patches: build
	@$(BIN)/python packaging/upstream/patches.py $(if $(KERNELS),--kernels "$(KERNELS)") $(if $(TREE),--tree $(TREE)) \
		$(if $(SIGN),--sign "$(SIGN)") $(if $(TRY),--try)

# The main job, on a recording of real programs on a real kernel.
demo: build
	@echo "Running every scheduler on the bundled recording (headwaiter compare) ..." >&2
	@$(BIN)/headwaiter compare

build/c/build.ninja: .venv/.tools
	$(MESON) setup build/c >/dev/null
build/sanitize/build.ninja: .venv/.tools
	$(MESON) setup build/sanitize -Db_sanitize=address,undefined -Db_lundef=false >/dev/null
build/bench/build.ninja: .venv/.tools
	$(MESON) setup build/bench --buildtype=release >/dev/null

c-test: build/c/build.ninja
	@echo "Compiling and running the C tests ..." >&2
	@$(MESON) test -C build/c --print-errorlogs -q

# The same C tests with every memory access and every arithmetic step checked.
sanitize: build/sanitize/build.ninja
	@echo "Compiling and running the C tests under AddressSanitizer and UBSan ..." >&2
	@$(MESON) test -C build/sanitize --print-errorlogs -q

# Every processor runs tests; conftest.py says how many there are, and about how long they take.
PYTEST := $(BIN)/pytest --numprocesses auto --dist worksteal

# What a change may break, in a few minutes, with nothing but what README asks for. The C tests run once, with everything checked.
test: build sanitize
	@$(PYTEST) -m "not thorough and not long"

# All Python tests, but for those in the lab that take minutes each.
test-python: build
	@$(PYTEST) -m "not long"

# Everything that CI runs. Most of lint takes one processor.
test-all: build
	@$(MAKE) -j2 --output-sync=target --no-print-directory lint c-test sanitize
	@$(MAKE) --no-print-directory test-python test-compilers mutants-changed

# Runs of the lab that take minutes each.
test-long: build
	$(BIN)/pytest -m long

# The C tests with other compilers than this machine's own, which lint and c-test have, warnings being errors (.ci/compilers).
test-compilers: .venv/.tools build/c/build.ninja
	@.ci/compilers

# README's two commands where people are (root only, some minutes each): before an issue is resolved, and before a release.
test-distributions:
	@for release in bookworm trixie unstable; do \
		.ci/root $$release sh -c 'make demo && make test' || { status=$$?; test $$status = 3 || exit $$status; \
			.ci/root --expired $$release sh -c 'make demo && make test' || exit $$?; }; \
	done

PYTHON_FILES := src package packaging/wheels packaging/test-guest packaging/upstream tests bench docs kmod kmod/build core/new-policy .ci/root .ci/newest
C_FILES = $(shell git ls-files '*.c' '*.h')

build/lint/build.ninja: .venv/.tools
	$(MESON) setup build/lint -Dwerror=true >/dev/null

# Warnings are errors here and in CI. Who builds the program has another compiler than we have, and is not to blame for its warnings.
lint: build build/lint/build.ninja
	@echo 'Compiling C with warnings as errors ...' >&2
	@$(MESON) compile -C build/lint >/dev/null || { $(MESON) compile -C build/lint; exit 1; }
	$(BIN)/ruff check $(PYTHON_FILES)
	$(BIN)/ruff format --check $(PYTHON_FILES)
	@echo 'clang-format --dry-run -Werror (all of C)'
	@$(BIN)/clang-format --dry-run -Werror $(C_FILES)
	$(BIN)/shellcheck packaging/deb packaging/test-deb packaging/try-deb packaging/test-recipes packaging/try-recipes
	$(BIN)/shellcheck packaging/debian/*.postinst packaging/debian/*.prerm packaging/debian/*.postrm
	$(BIN)/shellcheck -e SC1091,SC2034,SC2154 packaging/upstream/blktests/90[13]
	$(BIN)/shellcheck -s busybox packaging/upstream/blktests.sh
	$(BIN)/shellcheck -s bash -e SC2034,SC2128,SC2154,SC2164 packaging/PKGBUILD
	$(BIN)/shellcheck -e SC1091,SC2154 packaging/initramfs-hook
	$(BIN)/shellcheck .ci/run .ci/compilers .ci/kernels lab/guest/init lab/guest/*.sh lab/agree/*.sh
	$(BIN)/shellcheck -s busybox -e SC2016,SC2086 lab/experiments/*/*.sh
	$(BIN)/shellcheck -s busybox -e SC2016,SC2034,SC2086,SC2154 lab/published/*.sh
	$(BIN)/mypy
	$(BIN)/mypy kmod/build kmod
	$(BIN)/mypy core/new-policy
	$(BIN)/mypy packaging/wheels
	$(BIN)/mypy packaging/test-guest
	$(BIN)/mypy .ci/newest
	$(BIN)/mypy tests bench docs packaging/upstream

# Put all of Python and C into the one form that lint asks for.
format: .venv/.tools
	$(BIN)/ruff format -q $(PYTHON_FILES)
	$(BIN)/clang-format -i $(C_FILES)

bench: build build/bench/build.ninja
	@$(MESON) compile -C build/bench >/dev/null
	$(BIN)/python bench/run.py build/bench/bench/bench

# Plant faults, one by one: some test must catch each. All that are listed for C; ONLY=words selects, of Python as well.
mutants: build
	$(BIN)/python tests/mutants.py $(ONLY)

# Those that have to do with what has changed, no more than twenty of each language, and none begun after two minutes.
mutants-changed: build
	$(BIN)/python tests/mutants.py --changed --most 20 --minutes 2

# Damage what headwaiter reads, for an hour a format; FUZZ="fio --seconds 60" for less (docs/testing.md).
fuzz: build
	cd tests && ../$(BIN)/python -m fuzzing --findings ../build/fuzz $(FUZZ)

docs: build
	$(BIN)/python docs/generate.py

# The documents as a site, which works from a file; links that lead nowhere end it.
docs-site: .venv/.site
	@$(BIN)/python docs/site.py build/site

.venv/.site: .venv/.tools
	@echo "Installing Sphinx from PyPI into .venv ..." >&2
	@$(BIN)/python -c '$(SITE)' >.venv/site.txt
	@$(BIN)/pip install -q --disable-pip-version-check $(if $(REQUIREMENTS),--require-hashes -r $(REQUIREMENTS),-r .venv/site.txt)
	@touch $@

# Man pages, from what --help is made from.
man: build
	@$(BIN)/python docs/man.py build/man

# A policy to begin with: make new-policy NAME=mine
new-policy: .venv/.tools
	$(BIN)/python core/new-policy "$(NAME)"
	$(MAKE) docs

# Measure anew what the JSON files beside the lab's scripts hold (some hours), and put it into the documents.
READERS := --set "SCHEDULERS=mq-deadline bfq bfq-throughput hw-as hw-cas hw-cfq-slice" --set "READERS=2 4 8"
PAIRS := --set "SCHEDULERS=hw-maitre bfq"
FORMER := --set "JOBS=$(shell seq -s ' ' 101 115)"
LATTER := --set "JOBS=$(shell seq -s ' ' 116 130)"
WD := --set DRIVE=wd-re-4tb --set DEPTH=32 --set RUNTIME=20
ADVISE := $(BIN)/headwaiter lab run advise -k 6.12 --set RUNS=2 --json -o lab/experiments/advise/advise
STOCK := --set STOCK=1 --set "SCHEDULERS=none mq-deadline kyber bfq"
lab-docs: build
	$(BIN)/headwaiter lab run readers -k 6.12 $(READERS) --json -o lab/experiments/readers/readers-6.12.json
	$(BIN)/headwaiter lab run maitre -k 6.12 --json -o lab/experiments/maitre/maitre-6.12.json
	$(BIN)/headwaiter lab run maitre -k 6.1 --json -o lab/experiments/maitre/maitre-6.1.json
	$(BIN)/headwaiter lab run commits -k 6.12 --json -o lab/experiments/commits/commits-6.12.json
	$(BIN)/headwaiter lab run commits -k 6.1 --json -o lab/experiments/commits/commits-6.1.json
	$(BIN)/headwaiter lab run groups -k 6.12 --json -o lab/experiments/groups/groups-6.12.json
	$(BIN)/headwaiter lab run groups -k 6.1 --json -o lab/experiments/groups/groups-6.1.json
	$(BIN)/headwaiter lab run pairs -k 6.12 $(PAIRS) --json -o lab/experiments/pairs/pairs-6.12.json
	$(BIN)/headwaiter lab run starts -k 6.12 --json -o lab/experiments/starts/starts-6.12.json
	$(BIN)/headwaiter lab run starts -k 6.1 --json -o lab/experiments/starts/starts-6.1.json
	$(ADVISE)-6.12.json $(FORMER)
	$(ADVISE)-more-6.12.json $(LATTER)
	$(ADVISE)-wd-re-4tb-6.12.json $(WD) $(FORMER)
	$(ADVISE)-wd-re-4tb-more-6.12.json $(WD) $(LATTER)
	$(BIN)/headwaiter lab run watch -k 6.12 --json -o lab/experiments/watch/watch-6.12.json
	$(BIN)/headwaiter lab run watch -k 6.12 $(STOCK) --json -o lab/experiments/watch/watch-stock-6.12.json
	-$(BIN)/headwaiter lab agree --random 40 --seed 841 --json -o lab/agree/agree-random.json
	-$(BIN)/headwaiter lab agree -k 6.12 -d nvme-ssd -d sata-ssd -s none,mq-deadline,kyber,bfq,maitre \
		-j lab/jobs/flash-readers.fio -j lab/jobs/flash-mixed.fio --json -o lab/agree/agree-flash.json
	$(BIN)/python docs/generate.py

# Measure anew what docs/regret.json and docs/ablation.json hold (some minutes), and put it into the documents.
regret-docs: build
	$(BIN)/python docs/regrets.py
	$(BIN)/python docs/frontier.py
	$(BIN)/python docs/ablation.py
	$(BIN)/python docs/generate.py

# Measure anew what docs/published.json holds (a minute), and put it into docs/drives.md.
published-docs: build
	$(BIN)/headwaiter validate --published --json -o docs/published.json
	$(BIN)/python docs/generate.py

# Run the published experiments again, and put what comes out into docs/reproduction.md and, for a reviewer, into a new folder.
ARCHIVE := build/reproduction
reproduction: build
	$(BIN)/headwaiter reproduce --level sim --level lab --archive $(ARCHIVE) --json -o docs/reproduction.json
	$(BIN)/python docs/generate.py

# Kernel modules, for the running kernel or for KERNEL=headers (and BTF=vmlinux or vmlinuz, where they are not found).
kmod:
	@kmod/build $(if $(KERNEL),--headers $(KERNEL)) $(if $(BTF),--btf $(BTF))

# For every kernel whose headers are installed, or for KERNELS=folders; what is refused is told, and the rest is built.
kmod-all:
	@status=0; for headers in $(or $(KERNELS),$(patsubst %/Module.symvers,%,$(wildcard /usr/src/*/Module.symvers))); do \
		kmod/build --headers $$headers || status=2; \
	done; exit $$status

# The lab's scripts under a kernel with every check, which is built when it is not there; not for CI (docs/testing.md).
test-kernel-debug: build
	$(BIN)/headwaiter lab run provoke
	$(BIN)/headwaiter lab run smoke -k debug
	$(BIN)/headwaiter lab run abuse -k debug
	$(BIN)/headwaiter lab run races
	$(BIN)/headwaiter lab run faults

# The modules under the kernels of each release of Debian and of its backports, with its own compiler (root only; half an hour each):
# lab/kernels has what came out, for docs/kernel.md. RELEASES=trixie for less.
test-kernels:
	@for release in $(or $(RELEASES),bookworm trixie unstable); do .ci/kernels $$release; done

# The source tree that DKMS builds from, in /usr/src: then `dkms install headwaiter/VERSION`.
dkms-tree:
	@rm -rf $(DKMS_TREE)
	@mkdir -p $(DKMS_TREE)
	@cp -r core kmod/api kmod/iosched kmod/disk kmod/build kmod/*.py kmod/Kbuild $(DKMS_TREE)
	@sed 's/@VERSION@/$(VERSION)/' kmod/dkms.conf >$(DKMS_TREE)/dkms.conf
	@echo $(DKMS_TREE)

clean:
	rm -rf build .venv
