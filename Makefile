# The commands people type; meson and ninja do the work. `make help` lists them.

PREFIX  ?= /usr/local
DESTDIR ?=
BUILD   := build

.DEFAULT_GOAL := all
.PHONY: all help packages demo check check-torch portable install uninstall bench fuzz format clean

all: ## build the program: build/spotter
	@tools/packages.sh check build
	@tools/build.sh $(BUILD)

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1|/p' Makefile | awk -F'|' '{ printf "%-20s %s\n", $$1, $$2 }'

packages: ## install every Debian package that the rest needs (root or sudo)
	@tools/packages.sh install build bpf demo test lint

demo: ## install what is missing, build, train a small network under spotter, print the report
	@tools/demo.sh

check: ## install what is missing, build, pass every test
	@tools/check.sh

check-torch: ## the step hook against the PyTorch releases it supports (downloads them)
	@tools/packages.sh check build
	@tools/build.sh $(BUILD)
	@tests/torch/run

portable: ## build/portable/spotter: one file that needs nothing but glibc
	@tools/packages.sh check build bpf
	@tools/portable.sh

install: all ## install under PREFIX (/usr/local), below DESTDIR if set
	@tools/install.sh $(BUILD) "$(PREFIX)" "$(DESTDIR)"

uninstall: ## remove what install put there
	@tools/install.sh --remove $(BUILD) "$(PREFIX)" "$(DESTDIR)"

bench: all ## measure what spotter costs beside other tools
	@bench/run

fuzz: ## 20 s of libFuzzer per target
	@tools/packages.sh check build lint
	@tools/fuzz.sh 20

format: ## lay the C code out by .clang-format
	@tools/packages.sh check lint
	@tools/sources.sh c | xargs clang-format -i

clean: ## remove everything that was built
	rm -rf $(BUILD)
