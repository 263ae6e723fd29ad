# The two commands of the README, and those of everyday work. `make help` lists them.
BUILD := build
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)

.DEFAULT_GOAL := help
.PHONY: help demo speedrun bench bench-zoo test build format check-format lint install clean packages

help:  ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: build  ## Train a residual network on Fashion-MNIST (two to nine minutes on two cores)
	@tools/install_packages.sh demo
	$(BUILD)/weft train recipes/demo.toml $(if $(RUN),--run $(RUN))

speedrun: build  ## Train on CIFAR-10 as fast as it goes: CIFAR10=DIR (binary files); PEER=1: beside PyTorch
	@test -n "$(CIFAR10)" || { echo "make speedrun: name the folder of CIFAR-10's binary files, CIFAR10=DIR" >&2; exit 2; }
ifdef PEER
	@tools/install_packages.sh bench
	benchmarks/cifar10_speedrun.py $(CIFAR10) --weft $(BUILD)/weft
else
	$(BUILD)/weft train recipes/cifar10_speedrun.toml --data cifar10:$(CIFAR10) $(if $(RUN),--run $(RUN))
endif

bench: build  ## Weft beside PyTorch as a table (20 minutes): ROWS=lenet5,compile ROUNDS=5 CIFAR10=DIR QUICK=1
	@tools/install_packages.sh bench
	benchmarks/table.py --weft $(BUILD)/weft --markdown $(BUILD)/bench.md --json $(BUILD)/bench.json \
	  $(if $(ROWS),--rows $(ROWS)) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(CIFAR10),--cifar10 $(CIFAR10)) \
	  $(if $(QUICK),--quick)

bench-zoo: build  ## Every model beside PyTorch, f32 and bf16 (an hour; at first hours, which may be interrupted): ONLY=lenet5 ROUNDS=3
	@tools/install_packages.sh bench
	benchmarks/zoo.py --weft $(BUILD)/weft --json $(BUILD)/zoo.json --goes-on $(if $(ONLY),--only $(ONLY)) $(if $(ROUNDS),--rounds $(ROUNDS))

test: configure  ## Build everything and run the tests
	@tools/install_packages.sh test
	@cmake --build $(BUILD) --parallel $(JOBS)
	ctest --test-dir $(BUILD) --output-on-failure --parallel 2 --label-exclude slow

build: configure  ## Build the program build/weft
	@cmake --build $(BUILD) --parallel $(JOBS) --target weft_program

.PHONY: configure
configure: packages
	@test -f $(BUILD)/build.ninja || cmake --preset release

packages:
	@tools/install_packages.sh build

sources = git ls-files '*.cpp' '*.h'

format:  ## Bring all sources into the project's style
	@tools/install_packages.sh develop
	@$(sources) | xargs clang-format -i

check-format:  ## Fail where a source is not in the project's style
	@$(sources) | xargs clang-format --dry-run --Werror

lint: configure  ## Check the include arrows and run clang-tidy (a quarter of an hour on two cores)
	@tools/install_packages.sh develop
	@python3 tools/check_layers.py
	@tools/lint.py --build $(BUILD) --jobs $(JOBS)

install: build  ## Install program, library and headers under PREFIX (default /usr/local)
	@cmake --install $(BUILD) --prefix $(PREFIX)

clean:  ## Remove what was built (run directories stay)
	@rm -rf $(BUILD) build-dev build-asan build-tsan
