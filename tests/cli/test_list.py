"""`nel list`: every benchmark that has a name, without loading one."""

import json

import pytest

from nel.cli.main import main


def test_every_benchmark_has_a_line_with_what_it_is(capsys):
    from nel.environments.catalog import BUILT_IN

    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for info in BUILT_IN.values():
        line = next(line for line in lines if line.startswith(f"{info.name} "))
        assert info.description in line


def test_as_json_a_benchmark_has_data_and_licence(capsys):
    assert main(["list", "--json"]) == 0
    found = {item["name"]: item for item in json.loads(capsys.readouterr().out)["benchmarks"]}
    assert found["gsm8k"]["size"] == 1319
    assert found["gsm8k"]["license"] == "MIT"


@pytest.mark.parametrize("text", ["GSM", "maths", "word problems"])
def test_search_looks_at_name_category_and_description_in_any_case(capsys, text):
    assert main(["list", "--search", text, "--json"]) == 0
    found = [item["name"] for item in json.loads(capsys.readouterr().out)["benchmarks"]]
    assert "gsm8k" in found
    assert "mmlu" not in found


def test_a_search_without_a_hit_ends_with_1(capsys):
    assert main(["list", "--search", "no such thing"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "No benchmark matches.\n"


def test_source_narrows_the_list(capsys):
    assert main(["list", "--source", "plug-in", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["benchmarks"] == []
