# Thin: each target is one command of CMake, CTest or a script. `make demo` and `make test` do everything.
SHELL := /bin/bash
JOBS ?= $(shell nproc)

.PHONY: all deps build demo test check bench fuzz clean
all: build

deps:
	@build-support/install-deps

build: deps
	@[ -f build/build.ninja ] || cmake --preset release
	@cmake --build build -j $(JOBS)

test: build
	@ctest --test-dir build --output-on-failure -j 4

clean:
	rm -rf build
