"""The docs page lists every key as the schemas have it, and the JSON Schema says what the loader does."""

import subprocess
import sys
from pathlib import Path

import pytest
from config_texts import load

from nel.config.catalogue import key_tables
from nel.config.eval_config import EvalConfig
from nel.config.schema import all_models, json_schema, model_at, parents, rows, shape_at

PAGE = Path(__file__).parents[2] / "docs" / "config.md"
HOW = "python -m nel.config.catalogue docs/config.md"


def test_the_page_holds_the_table_of_every_key():
    begin, end = "<!-- keys: begin -->\n", "<!-- keys: end -->"
    shown = PAGE.read_text(encoding="utf-8").partition(begin)[2].partition(end)[0]
    assert shown.strip() == key_tables().strip(), f"write it anew with: {HOW}"


def test_every_key_of_every_schema_is_in_a_table():
    tables = {part.splitlines()[0]: part for part in key_tables().split("### ")[1:]}
    for model in all_models():
        shown = "".join(
            text for title, text in tables.items() if any(_title(one) == title for one in (model, *parents(model)))
        )
        for row in rows(model):
            assert f"| `{row.name}` |" in shown, (model.__name__, row.name)


def _title(model):
    from nel.config.catalogue import title

    return title(model)


def test_every_key_has_a_line_of_its_own():
    for model in all_models():
        for row in rows(model):
            assert (row.field.description or "").endswith("."), (model, row.name)


def test_the_page_can_be_written_anew(tmp_path):
    page = tmp_path / "config.md"
    page.write_text("before\n<!-- keys: begin -->\nold\n<!-- keys: end -->\nafter\n")
    subprocess.run([sys.executable, "-m", "nel.config.catalogue", str(page)], check=True, timeout=60)
    assert page.read_text() == f"before\n<!-- keys: begin -->\n{key_tables()}<!-- keys: end -->\nafter\n"


def test_the_json_schema_names_every_key_and_the_keys_of_composition():
    schema = json_schema()
    assert {"defaults", "_base_", *EvalConfig.model_fields} == set(schema["properties"])
    assert list(schema["patternProperties"]) == ["^_"]
    assert schema["else"]["required"] == ["benchmarks"]
    for model in all_models()[1:]:
        keys = schema["$defs"][model.__name__]["properties"]
        assert set(keys) == set(model.model_fields)
        for name, value in keys.items():
            assert value.get("description") or "$ref" in value, (model, name)


def test_the_json_schema_lets_a_variable_stand_for_a_number():
    repeats = json_schema()["$defs"]["Benchmark"]["properties"]["repeats"]
    assert {"minimum": 1, "type": "integer"} in repeats["anyOf"]
    assert {"type": "string", "pattern": r"\$\{"} in repeats["anyOf"]


def test_the_json_schema_refers_only_to_what_it_defines():
    import json

    schema = json_schema()
    text = json.dumps(schema)
    references = {part.split('"')[0] for part in text.split('"#/$defs/')[1:]}
    assert references <= set(schema["$defs"])
    assert "x-later" not in text


@pytest.mark.parametrize(
    ("path", "there"),
    [
        (("output", "dir"), True),
        (("outptu",), False),
        (("services", "any", "url"), True),
        (("services", "any", "ulr"), False),
        (("services", "any", "generation", "top_p"), True),
        (("benchmarks", "0", "params", "anything", "below"), True),
        (("cluster", "container_env", "A"), True),
        (("cluster", "node_pools", "gpu", "partition"), True),
        (("output", "dir", "below"), False),
    ],
)
def test_the_schema_knows_which_paths_may_be(path, there):
    assert (shape_at(path) is not None) is there


def test_the_schema_of_a_map_is_found_by_its_type():
    raw = {"services": {"m": {"type": "vllm"}}, "benchmarks": [{"solver": {"type": "simple"}}]}
    assert model_at(("services", "m"), raw).__name__ == "VllmService"
    assert model_at(("benchmarks", 0, "solver", "generation"), raw).__name__ == "Generation"
    assert model_at(("benchmarks", 0, "params"), raw) is None


def test_the_public_names_can_be_imported():
    import nel.config

    names = ["EvalConfig", "LoadedConfig", "compose_config", "json_schema", "load_config", "parse_eval_config"]
    names += ["get_default", "plan_check", "quick_config", "set_default", "unset_default"]
    assert set(names) <= set(dir(nel.config))
    for name in names:
        assert callable(getattr(nel.config, name))


def test_importing_the_package_and_the_defaults_needs_no_heavy_module():
    code = "import sys, nel.config, nel.config.defaults; print({'pydantic', 'ruamel.yaml', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "set()"


def test_the_examples_of_the_page_load():
    text = PAGE.read_text(encoding="utf-8")
    blocks = [block.partition("```")[0] for block in text.split("```yaml\n")[1:]]
    whole = [block for block in blocks if "\nbenchmarks:" in block and "defaults:" not in block]
    assert whole
    for block in whole:
        load(block, env={"MY_API_KEY": "k", "SCRATCH": "/s"})
