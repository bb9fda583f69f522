# Two commands for a fresh machine with Python >= 3.11 and make: `make demo` and `make test`.
# The first run installs everything they need into .venv; later runs skip that.

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
READY := $(VENV)/.ready
RUN := $(VENV)/bin
LINTERS := .venv-linters
RELEASE := .venv-release
SDKS := .venv-sdk-v2 .venv-sdk-v3
PYTEST_FLAGS ?= --numprocesses auto --dist loadfile --no-loadscope-reorder
# byte code is kept, whatever an image's environment says: else each process compiles boto3 anew
unexport PYTHONDONTWRITEBYTECODE

# A virtual environment has absolute paths: that of a copied checkout would run the original's code.
VENV_CODE := $(shell cat $(VENV)/lib/python3*/site-packages/__editable__.sageaudit-*.pth 2>/dev/null)
ifneq ($(VENV_CODE),)
ifneq ($(shell test "$(VENV_CODE)" -ef functions && echo here),here)
ifneq ($(filter-out help clean,$(MAKECMDGOALS)),)
$(error this checkout was moved or copied after its $(VENV) was made, which finds sageaudit in $(VENV_CODE): \
run `rm -rf $(VENV)`, then this command again, which makes a new one)
endif
endif
endif

.DEFAULT_GOAL := help
.PHONY: help demo test test-all browser near check lint format synth golden docs picture release rule dist bench dynamodb linters sdks audit-packages mutants faults fuzz lock deploy try clean

help: ## shows what each target does
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

demo: $(READY) ## audits recorded jobs on a local AWS: needs no account
	@$(RUN)/python -m local.demo

test: $(READY) ## runs every test, with few examples of each property
	@$(RUN)/python -m pytest $(PYTEST_FLAGS)

test-all: $(READY) $(RELEASE)/.ready ## the same with all examples, then a quarter of the faults, mutated inputs, the browser, the wheel and linters
	@$(RUN)/python -m pytest $(PYTEST_FLAGS) --hypothesis-profile full -m "not faults and not fuzz"
	@$(MAKE) --no-print-directory FUZZ_INPUTS=8000 FAULTS_SHARE=4 faults fuzz browser dist linters

browser: $(READY) ## opens the reports in a headless Chromium, which must be installed
	@$(RUN)/python -m pytest tests/browser

check: lint test ## lint and tests: run it before a commit

near: $(READY) ## runs the tests that cover a file: make near FILE=functions/sageaudit/rules/judge.py
	@$(RUN)/python -m tools.near "$(FILE)"

lint: $(READY) lint-fast ## checks style, format and types, and prints what grew above the usual size
	@$(RUN)/mypy
	@$(RUN)/python -m tools.sizes

lint-fast: $(READY) ## checks style and format alone, in a second
	@$(RUN)/ruff check --quiet .
	@$(RUN)/ruff format --quiet --check .

format: $(READY) ## formats the code
	@$(RUN)/ruff format .
	@$(RUN)/ruff check --fix .
	@$(RUN)/ruff format .

synth: $(READY) ## writes the templates and the Lambda asset into cdk.out; no AWS, no Docker
	@rm -rf cdk.out
	@$(RUN)/python app.py
	@ls cdk.out/*.template.json

golden: $(READY) ## rewrites the files that tests compare with: review the diff
	@$(RUN)/python -m infra.template
	@$(RUN)/python -m tests.golden.regenerate

docs: $(READY) ## rewrites all pages, and parts of pages, that are made
	@$(RUN)/python -m tools.pages.track_records
	@$(RUN)/python -m tools.pages.rules
	@$(RUN)/python -m tools.pages.guidance
	@$(RUN)/python -m tools.pages.readme
	@$(RUN)/python -m tools.pages.debugger
	@$(RUN)/python -m tools.pages.recorded_gpus
	@$(RUN)/python -m tools.pages.gpu_throughput
	@$(RUN)/python -m tools.pages.permissions
	@$(RUN)/python -m tools.pages.alarms
	@$(RUN)/python -m tools.pages.running_cost
	@$(RUN)/python -m tools.pages.performance
	@$(RUN)/python -m tools.pages.organization
	@$(RUN)/python -m tools.pages.message_year
	@$(RUN)/python -m tools.pages.schemas
	@$(RUN)/python -m tools.pages.policy
	@$(RUN)/python -m tools.pages.commands
	@$(RUN)/python -m tools.pages.example_report

picture: $(READY) ## takes the README's picture of the example company's report; needs Chromium
	@$(RUN)/python -m tools.screenshot

dist: $(READY) ## builds the wheel and checks it in clean environments, also with the lowest versions
	@$(RUN)/python -m tools.dist

dynamodb: $(READY) ## the tests of the history on a real DynamoDB: make dynamodb DYNAMODB=http://127.0.0.1:8000, or =aws for your account
	@test -n "$(DYNAMODB)" || { echo "say which: DYNAMODB=http://127.0.0.1:8000 (an endpoint), or DYNAMODB=aws \
	(tables named sageaudit-test-... in the account and region of your credentials, removed afterwards)" >&2; exit 2; }
	@DYNAMODB="$(DYNAMODB)" $(RUN)/python -m pytest $(PYTEST_FLAGS) --hypothesis-profile dynamodb -q tests/adapters/history

linters: $(READY) $(LINTERS)/.ready ## runs cfn-lint, checkov and cdk-nag over the templates of every combination of options
	@rm -rf build/templates
	@$(RUN)/python -m tools.combinations build/templates
	@$(LINTERS)/bin/python -m tools.linters build/templates

sdks: $(SDKS:=/.ready) ## runs the guard in both versions of the SageMaker SDK, each in an environment of its own
	@for sdk in v2 v3; do .venv-sdk-$$sdk/bin/python -m pytest -q --confcutdir tests/sdks -o filterwarnings= \
		--disable-warnings tests/sdks/test_sdk_$$sdk.py || exit 1; done

bench: $(READY) ## measures speed and size in CPU time; with an earlier checkout: make bench PART=core BASE=../before KEEP=1
	@$(RUN)/python -m tools.bench $(PART) $(if $(BASE),--base "$(BASE)") $(if $(ONLY),--only "$(ONLY)") $(if $(KEEP),--keep)

audit-packages: $(RELEASE)/.ready ## asks the network for known vulnerabilities of the asset's packages
	@$(RELEASE)/bin/python -m pip_audit --strict --disable-pip --progress-spinner off -r functions/requirements.txt

release: $(READY) $(RELEASE)/.ready ## makes a release in dist/, commits and tags it, pushes nothing: make release VERSION=0.1.0
	@$(RUN)/python -m tools.release "$(VERSION)"

rule: $(READY) ## writes a new rule: make rule NAME=volume-nearly-full ID=SA506
	@$(RUN)/python -m tools.new_rule "$(NAME)" "$(ID)"

mutants: $(READY) ## which small faults no test notices: make mutants N=10 SEED=1 OF=core, or OF=shell
	@$(RUN)/python -m tools.mutants "$(or $(N),10)" "$(or $(SEED),1)" "$(or $(OF),core)"

faults: $(READY) ## every AWS call, channel answer and step with every fault; FAULTS_SHARE=2: half of them, other ones after a commit
	@FAULTS_SHARE="$(or $(FAULTS_SHARE),1)" FAULTS_OFFSET="$$(git rev-list --count HEAD 2>/dev/null || echo 0)" $(RUN)/python -m pytest tests/faults -m faults --hypothesis-profile full --numprocesses auto --dist worksteal -q

fuzz: $(READY) ## 20,000 mutated inputs for each handler, or FUZZ_INPUTS=8000; others with FUZZ_SEED=2
	@FUZZ_SEED="$(or $(FUZZ_SEED),1)" FUZZ_INPUTS="$(or $(FUZZ_INPUTS),20000)" $(RUN)/python -m pytest tests/fuzz -m fuzz --numprocesses auto --dist worksteal -q

lock: $(READY) ## writes each requirements file from the .in beside it
	@$(RUN)/python -m pip install --quiet uv
	@$(RUN)/uv pip compile --quiet --universal --python-version 3.11 --no-header \
		requirements.in --output-file requirements.txt
	@cd functions && ../$(RUN)/uv pip compile --quiet --universal --python-version 3.11 --no-header \
		--generate-hashes --constraint ../requirements.txt requirements.in --output-file requirements.txt
	@$(RUN)/uv pip compile --quiet --universal --python-version 3.11 --no-header \
		--generate-hashes requirements-linters.in --output-file requirements-linters.txt
	@$(RUN)/uv pip compile --quiet --universal --python-version 3.11 --no-header \
		--generate-hashes requirements-release.in --output-file requirements-release.txt
	@$(RUN)/uv pip compile --quiet --universal --python-version 3.11 --no-header \
		--generate-hashes requirements-sdk-v2.in --output-file requirements-sdk-v2.txt
	@$(RUN)/uv pip compile --quiet --universal --python-version 3.11 --no-header --generate-hashes \
		--override requirements-sdk-v3.overrides requirements-sdk-v3.in --output-file requirements-sdk-v3.txt

deploy: $(READY) ## asks for what it needs, stores the secrets, deploys with a pinned CDK CLI; ARGS=--help shows its flags
	@$(RUN)/python -m infra.deploy $(ARGS)

try: $(READY) ## tries a deployment in the account of your credentials for at most $$0.05, and removes it: ARGS=--help shows its flags
	@$(RUN)/python -m tools.try_account $(ARGS)

clean: ## deletes what the other targets made
	rm -rf $(VENV) $(LINTERS) $(RELEASE) $(SDKS) build dist cdk.out .mypy_cache .pytest_cache .ruff_cache .hypothesis functions/*.egg-info

$(READY): requirements.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "sageaudit needs Python 3.11 or newer; \
	python3 here is: $$(python3 --version 2>&1)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { echo "$(PYTHON) has no venv: on Debian and \
	Ubuntu run: apt install python3-venv" >&2; exit 1; }
	@echo "Installing once (1 of 3): $(VENV), for $$($(PYTHON) --version) ..." >&2
	@$(PYTHON) -m venv $(VENV)
	@all=$$(grep -c == requirements.txt); echo "Installing once (2 of 3): $$all packages, which takes a minute or more ..." >&2; \
	{ $(RUN)/python -m pip install --no-compile --disable-pip-version-check -r requirements.txt 2>$(VENV)/pip.log \
		|| { grep -v ^WARNING $(VENV)/pip.log >&2; echo Failed; }; } | { \
	n=0; while read -r word name _; do case "$$word" in \
		Collecting|Processing) n=$$((n + 1)); name=$${name##*/}; \
			test $$((n % 10)) -ne 0 || echo "  downloading: $$n of $$all, $${name%%[=-]*}" >&2;; \
		Installing) echo "  unpacking all of them ..." >&2;; \
		Failed) exit 1;; \
	esac; done; }
	@echo "Installing once (3 of 3): sageaudit itself ..." >&2
	@$(RUN)/python -m pip install --quiet --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(LINTERS)/.ready: requirements-linters.txt
	@echo "Installing the linters once, in $(LINTERS) ..." >&2
	@$(RUN)/python -m venv $(LINTERS)
	@$(LINTERS)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-linters.txt
	@touch $@

$(RELEASE)/.ready: requirements-release.txt
	@echo "Installing what checks a release once, in $(RELEASE) ..." >&2
	@$(RUN)/python -m venv $(RELEASE)
	@$(RELEASE)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-release.txt
	@touch $@

$(SDKS:=/.ready): .venv-%/.ready: requirements-%.txt $(READY)
	@echo "Installing the SageMaker SDK once, in .venv-$* ..." >&2
	@$(RUN)/python -m venv .venv-$*
	@.venv-$*/bin/python -m pip install --quiet --no-compile --disable-pip-version-check --no-deps --require-hashes -r $<
	@touch $@
