"""A benchmark is found by file, by address or by name, and what is not found is told with what comes near."""

import json
import subprocess
import sys

import pytest

from nel.core.errors import ConfigError, LoadError, UsageError
from nel.environments import EvalEnvironment, SeedResult, VerifyResult, get_environment, list_benchmarks, register
from nel.environments.catalog import SCHEMES, Scheme

ONE = """
from nel.environments import benchmark, scorer

@benchmark(name="{name}", dataset=[{{"q": "?", "target": "!"}}], prompt="{{q}}")
@scorer
def judged(sample):
    return True
"""


class Counting(EvalEnvironment):
    name = "Counting"

    def __init__(self, upto: int = 3, dataset=None) -> None:
        self.upto = upto
        self.dataset = dataset

    async def dataset_size(self):
        return self.upto

    async def seed(self, idx):
        return SeedResult(prompt=str(idx), expected_answer=str(idx + 1))

    async def verify(self, response, expected, sandbox=None, *, metadata, model_response=None):
        return VerifyResult(reward=float(response == expected))


register(Counting)


def write(path, *names):
    path.write_text("".join(ONE.format(name=name) for name in names))
    return str(path)


def test_a_file_with_one_benchmark_needs_no_name(tmp_path):
    assert get_environment(write(tmp_path / "one.py", "single-one")).name == "single-one"


def test_a_file_with_several_needs_one(tmp_path):
    spec = write(tmp_path / "two.py", "first-of-two", "second-of-two")
    with pytest.raises(LoadError, match="2 benchmarks") as caught:
        get_environment(spec)
    assert f"{spec}:first-of-two" in caught.value.hint
    assert get_environment(f"{spec}:Second-Of-Two").name == "second-of-two"
    with pytest.raises(LoadError, match="'first-of-tow'") as caught:
        get_environment(f"{spec}:first-of-tow")
    assert "'first-of-two'" in caught.value.hint


def test_a_benchmark_of_a_file_may_be_named_by_its_variable(tmp_path):
    spec = write(tmp_path / "variable.py", "named-by-variable")
    assert get_environment(f"{spec}:judged").name == "named-by-variable"


def test_a_file_without_a_benchmark_says_what_to_add(tmp_path):
    (tmp_path / "none.py").write_text("x = 1\n")
    with pytest.raises(LoadError, match="no benchmark in this file") as caught:
        get_environment(str(tmp_path / "none.py"))
    assert "@benchmark" in caught.value.hint


def test_a_file_that_is_missing_or_broken_is_named(tmp_path):
    write(tmp_path / "bench.py", "some-bench")
    with pytest.raises(LoadError, match=r"bnch\.py"):
        get_environment(str(tmp_path / "bnch.py"))
    (tmp_path / "broken.py").write_text("import json\njson.nothing\n")
    with pytest.raises(LoadError, match=r"broken\.py:2"):
        get_environment(str(tmp_path / "broken.py"))


def test_an_edited_file_is_loaded_anew(tmp_path):
    spec = write(tmp_path / "edited.py", "before-edit")
    assert get_environment(spec).name == "before-edit"
    write(tmp_path / "edited.py", "after-edit")
    assert get_environment(spec).name == "after-edit"


def test_two_benchmarks_of_one_name_in_one_file_are_refused(tmp_path):
    with pytest.raises(UsageError, match="two benchmarks are named 'twice'"):
        get_environment(write(tmp_path / "twice.py", "twice", "twice"))


def test_one_name_in_two_files_is_ambiguous_only_as_a_bare_name(tmp_path):
    one, other = write(tmp_path / "a.py", "shared-name"), write(tmp_path / "b.py", "shared-name")
    assert get_environment(one).name == get_environment(other).name == "shared-name"
    with pytest.raises(LoadError, match="several benchmarks are named") as caught:
        get_environment("shared-name")
    assert one in str(caught.value)


def test_a_users_benchmark_does_not_stand_in_for_a_built_in_one(tmp_path):
    spec = write(tmp_path / "mine.py", "mmlu")
    assert get_environment(spec).definition.dataset == [{"q": "?", "target": "!"}]
    try:
        with pytest.raises(LoadError, match="several benchmarks are named 'mmlu'"):
            get_environment("mmlu")
    finally:
        from nel.environments import registry

        registry._registered.pop(("mmlu", str((tmp_path / "mine.py").resolve())))


@pytest.mark.parametrize("name", ["gsm8k", "GSM8K", " MMLU "])
def test_a_built_in_name_is_found_whatever_its_case(name):
    assert get_environment(name).name == name.strip().lower()


def test_an_unknown_name_lists_what_comes_near():
    with pytest.raises(LoadError, match="no benchmark is named 'gms8k'") as caught:
        get_environment("gms8k")
    assert "gsm8k" in caught.value.hint
    assert "nel list" in caught.value.hint


@pytest.mark.parametrize("scheme", sorted(SCHEMES))
def test_a_scheme_that_comes_later_is_known_and_refused(scheme):
    with pytest.raises(LoadError, match="is not available yet"):
        get_environment(f"{scheme}://something")


def test_an_address_that_ends_like_a_file_is_an_address():
    with pytest.raises(LoadError, match=r"gym:// .* is not available yet"):
        get_environment("gym://cmd:python server.py")


def test_an_unknown_scheme_lists_what_comes_near():
    with pytest.raises(LoadError, match="unknown scheme 'lmeval'") as caught:
        get_environment("lmeval://arc_easy")
    assert "lm-eval://" in caught.value.hint
    with pytest.raises(LoadError, match="an address of data") as caught:
        get_environment("hf://openai/gsm8k")
    assert "dataset: hf://openai/gsm8k" in caught.value.hint


def loader(uri, *, params, dataset):
    return Counting(upto=len(uri), **params)


def test_a_schemes_loader_gets_address_and_parameters(monkeypatch):
    monkeypatch.setitem(SCHEMES, "toy", Scheme(description="a toy", loader=f"{__file__}:loader"))
    assert get_environment("toy://abc").upto == len("toy://abc")


def test_a_class_gets_its_parameters_and_no_others():
    assert get_environment("counting", params={"upto": 5}, dataset="rows.jsonl").upto == 5
    with pytest.raises(ConfigError, match=r"params\.up_to: unknown parameter") as caught:
        get_environment("Counting", params={"up_to": 5})
    assert "'upto'" in caught.value.hint
    with pytest.raises(ConfigError, match=r"params\.num_fewshot"):
        get_environment("Counting", num_fewshot=3)


def test_a_class_that_brings_its_own_data_takes_no_others():
    class Fixed(Counting):
        name = "fixed-data"

        def __init__(self) -> None:
            super().__init__()

    register(Fixed)
    with pytest.raises(ConfigError, match="brings its own data"):
        get_environment("fixed-data", dataset="rows.jsonl")


def test_what_is_no_environment_is_not_registered():
    with pytest.raises(UsageError, match="neither an EvalEnvironment"):
        register(int)

    class Nameless(Counting):
        name = ""

    with pytest.raises(UsageError, match="no `name`"):
        register(Nameless)


def test_the_list_has_built_in_and_registered_benchmarks():
    found = {info.name: info for info in list_benchmarks()}
    assert found["gsm8k"].size == 1319
    assert found["gsm8k"].source == "built-in"
    assert found["Counting"].source == "file"


def test_a_plugin_is_listed_without_being_loaded_and_found_by_name(tmp_path, monkeypatch):
    (tmp_path / "toy_plugin.py").write_text(ONE.format(name="toy-bench"))
    info = tmp_path / "toy_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.4\nName: toy-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[nel.benchmarks]\ntoy-bench = toy_plugin:judged\nbroken = toy_plugin:x\n")
    monkeypatch.syspath_prepend(tmp_path)
    listed = {item.name: item for item in list_benchmarks()}
    assert listed["toy-bench"].source == "plug-in"
    assert "toy_plugin" not in sys.modules
    assert get_environment("Toy-Bench").name == "toy-bench"
    with pytest.raises(LoadError, match="'x'"):
        get_environment("broken")
    del sys.modules["toy_plugin"]


def test_listing_loads_no_benchmark_and_nothing_heavy():
    program = """
import json, sys
from nel.environments import list_benchmarks
names = [info.name for info in list_benchmarks()]
heavy = {"numpy", "pyarrow", "jinja2", "huggingface_hub", "pydantic", "aiohttp", "packaging", "asyncio"}
print(json.dumps([names, sorted(heavy & set(sys.modules)), sorted(m for m in sys.modules if m.startswith("nel."))]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    names, heavy, modules = json.loads(done.stdout)
    assert "gsm8k" in names
    assert heavy == []
    assert modules == [
        "nel.core",
        "nel.core.errors",
        "nel.core.loading",
        "nel.environments",
        "nel.environments.catalog",
        "nel.environments.registry",
    ]
