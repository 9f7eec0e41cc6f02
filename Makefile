# `make demo` and `make test` set up everything they need.
BIN := .venv/bin

.PHONY: setup demo test check bench docs lock clean

setup: ## Only the .venv, with nel in it
	@scripts/bootstrap

demo: setup ## The main job: a real small model, evaluated here
	@$(BIN)/nel eval run examples/quickstart.yaml

test: setup ## All tests
	@$(BIN)/python -m pytest -n 2 --dist worksteal -q
	@$(BIN)/python -m pytest -q -m daemon_restart tests/sandbox

check: setup ## Format, lint, types, floors, docs
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo 2>&1 || $(BIN)/lint-imports
	@$(BIN)/mkdocs build --strict --quiet --site-dir .cache/site

bench: setup ## Speed and memory, beside their limits
	@$(BIN)/python bench/run.py

docs: setup ## The documentation, served here
	@$(BIN)/mkdocs serve

lock: setup ## Remake the hashed lock from pyproject.toml (needs uv)
	@uv pip compile --quiet --universal --python-version 3.12 --generate-hashes --no-header \
	  --no-emit-index-url --no-emit-find-links --group dev --extra local --extra text --extra fast pyproject.toml -o requirements/dev.txt

clean:
	@rm -rf .venv .cache site
