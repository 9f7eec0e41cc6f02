"""A data set of the hub: pinned, downloaded once, resumed, read offline, and refused with a way out."""

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hub_server import FakeHub
from huggingface_hub import constants

from nel.core.errors import DataError
from nel.environments import BenchmarkDefinition, ByobEnvironment, FewShot, get_environment
from nel.environments.catalog import BUILT_IN
from nel.environments.data import open_source
from nel.environments.data.hub import HubAddress, choose_files


def parquet(rows):
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out)
    return out.getvalue()


def rows(name, count=3):
    return [{"question": f"{name} {idx}", "answer": str(idx)} for idx in range(count)]


GSM8K = {
    "README.md": b"---\nlicense: mit\n---\n# GSM8K\n",
    "main/test-00000-of-00002.parquet": parquet(rows("a")),
    "main/test-00001-of-00002.parquet": parquet(rows("b")),
    "main/train-00000-of-00001.parquet": parquet(rows("t")),
    "socratic/test-00000-of-00001.parquet": parquet(rows("s")),
}
SPEC = "hf://openai/gsm8k?config=main&split=test"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_PROGRESS_BARS", True)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    with FakeHub() as running:
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        yield running


def opened(spec):
    source = open_source(spec)
    source.prepare()
    return source


def test_the_files_of_one_split_are_read_and_nothing_else_is_downloaded(hub):
    commit = hub.add("openai/gsm8k", GSM8K)
    source = opened(SPEC)
    assert [source.row(idx)["question"] for idx in range(6)] == ["a 0", "a 1", "a 2", "b 0", "b 1", "b 2"]
    assert "test-00001-of-00002.parquet, row 1" in source.place(3)
    fetched = {line.rsplit("/", 1)[1] for line in hub.requests if line.startswith("GET /datasets")}
    assert fetched == {"README.md", "test-00000-of-00002.parquet", "test-00001-of-00002.parquet"}
    identity = source.identity()
    assert identity["source"] == SPEC
    assert identity["revision"] == commit
    assert identity["license"] == "mit"
    assert identity["rows"] == 6


def test_several_configurations_are_read_one_after_the_other_with_their_names(hub):
    commit = hub.add("openai/gsm8k", GSM8K)
    source = opened("hf://openai/gsm8k?config=socratic,main&split=test")
    assert [source.row(idx)["question"] for idx in (0, 3, 8)] == ["s 0", "a 0", "b 2"]
    assert [source.row(idx)["config"] for idx in (0, 3, 8)] == ["socratic", "main", "main"]
    assert "config" in next(iter(source.shapes))
    identity = source.identity()
    assert (identity["revision"], identity["rows"], identity["license"]) == (commit, 9, "mit")
    with pytest.raises(DataError, match="configuration 'manin'"):
        opened("hf://openai/gsm8k?config=socratic,manin&split=test")


def test_a_commit_pins_the_data_while_the_branch_moves_on(hub):
    first = hub.add("openai/gsm8k", GSM8K)
    second = hub.add("openai/gsm8k", GSM8K | {"main/test-00000-of-00002.parquet": parquet(rows("new"))})
    assert opened(SPEC).row(0)["question"] == "new 0"
    pinned = opened(f"{SPEC}&revision={first}")
    assert pinned.row(0)["question"] == "a 0"
    assert pinned.identity()["revision"] == first != second


def test_a_second_reading_downloads_nothing(hub):
    hub.add("openai/gsm8k", GSM8K)
    opened(SPEC)
    hub.requests.clear()
    opened(SPEC)
    assert [line for line in hub.requests if line.startswith("GET /datasets")] == []


def test_offline_the_cache_alone_is_used(hub, monkeypatch):
    commit = hub.add("openai/gsm8k", GSM8K)
    opened(SPEC)
    hub.requests.clear()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    source = opened(SPEC)
    assert len(source) == 6
    assert source.identity()["revision"] == commit
    assert opened(f"{SPEC}&revision={commit}").row(0)["question"] == "a 0"
    assert hub.requests == []


def test_offline_a_data_set_that_was_never_read_is_refused_with_a_way_out(hub, monkeypatch):
    hub.add("openai/gsm8k", GSM8K)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(DataError, match="not in the cache") as caught:
        opened(SPEC)
    assert "dataset: path/to/file.jsonl" in caught.value.hint


def test_a_split_of_which_only_a_part_is_cached_is_not_taken_for_the_whole(hub, monkeypatch):
    hub.add("openai/gsm8k", GSM8K)
    opened(SPEC)
    snapshot = next(
        path for path in __import__("pathlib").Path(constants.HF_HUB_CACHE).rglob("*00001-of-00002.parquet")
    )
    snapshot.unlink()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(DataError, match="only 1 of the split's 2 files"):
        opened(SPEC)


def test_an_interrupted_download_goes_on_where_it_stopped(hub, monkeypatch):
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 10_000)
    big = b"".join(b'{"n": %d}\n' % number for number in range(20_000))
    hub.add("own/big", {"test.jsonl": big})
    hub.cuts = [100_000]
    source = opened("hf://own/big")
    assert len(source) == 20_000
    assert source.row(19_999) == {"n": 19_999}
    assert hub.ranges == ["bytes=100000-"]


def test_after_a_download_that_was_given_up_only_the_missing_files_are_fetched(hub, monkeypatch):
    hub.add("openai/gsm8k", GSM8K)
    monkeypatch.setattr("time.sleep", lambda _: None)
    hub.on_file = lambda file: hub.cuts.extend([0] * 20) if file.endswith("00001-of-00002.parquet") else None
    with pytest.raises(DataError, match="could not be asked"):
        opened(SPEC)
    hub.on_file = lambda file: None
    hub.cuts.clear()
    hub.requests.clear()
    assert len(opened(SPEC)) == 6
    fetched = [line.rsplit("/", 1)[1] for line in hub.requests if line.startswith("GET /datasets")]
    assert fetched == ["test-00001-of-00002.parquet"]


def test_a_gated_data_set_opens_with_the_token_and_says_how_to_get_one(hub, monkeypatch):
    hub.add("own/gated", {"test.jsonl": b'{"a": 1}'})
    hub.gated.add("own/gated")
    with pytest.raises(DataError, match="the data set is gated") as caught:
        opened("hf://own/gated")
    assert "Accept its terms" in caught.value.hint
    assert "/datasets/own/gated" in caught.value.hint
    assert hub.tokens == []
    monkeypatch.setenv("HF_TOKEN", hub.token)
    assert opened("hf://own/gated").row(0) == {"a": 1}
    monkeypatch.setenv("HF_TOKEN", "hf_another")
    hub.add("own/gated", {"test.jsonl": b'{"a": 2}'})
    with pytest.raises(DataError, match="could not be downloaded") as caught:
        opened("hf://own/gated")  # where the hub's client falls back to the version that it has
    assert "hf_another" not in str(caught.value)


async def test_columns_that_have_changed_are_named_with_file_row_and_field(hub):
    old = {"main/test-00000-of-00001.parquet": parquet([{"question": "1+1?", "answer": "so\n#### 2"}])}
    new = {"main/test-00000-of-00001.parquet": parquet([{"problem": "1+1?", "answer": "so\n#### 2"}])}
    pinned = hub.add("openai/gsm8k", old)
    hub.add("openai/gsm8k", new)
    env = get_environment("gsm8k", dataset={"revision": "main"})
    with pytest.raises(DataError) as caught:
        await env.prepare()
    said = str(caught.value)
    assert "main/test-00000-of-00001.parquet, row 1" in said
    assert "question" in said
    assert "problem" in said
    env = get_environment("gsm8k", dataset={"revision": pinned})
    await env.prepare()
    assert await env.dataset_size() == 1
    await env.close()


async def test_examples_come_from_another_split_of_the_same_commit(hub):
    solved = [{"question": f"{n}+1=", "answer": str(n + 1)} for n in range(4)]
    files = {"test.jsonl": b'{"question": "9+9=", "answer": "18"}'}
    files["dev.jsonl"] = b"".join(json.dumps(row).encode() + b"\n" for row in solved)
    commit = hub.add("own/sums", files)
    hub.add("own/sums", files | {"dev.jsonl": b'{"question": "new", "answer": "x"}'})
    definition = BenchmarkDefinition(
        name="sums",
        dataset=f"hf://own/sums?revision={commit}",
        prompt="{question}",
        target_field="answer",
        fewshot=FewShot(rows={"split": "dev"}, choice="first"),
        num_fewshot=2,
    )
    env = ByobEnvironment(definition)
    await env.prepare()
    assert (await env.seed(0)).prompt == "0+1= 1\n\n1+1= 2\n\n9+9="
    assert env.data_identity()["fewshot"]["revision"] == commit
    await env.close()


def test_what_the_hub_refuses_is_said_with_the_next_step(hub):
    hub.add("own/open", {"test.jsonl": b"{}"})
    with pytest.raises(DataError, match="no such data set"):
        opened("hf://own/absent")
    with pytest.raises(DataError, match="no revision 'v9'"):
        opened("hf://own/open?revision=v9")


def test_a_hub_that_cannot_be_reached_is_said_with_the_way_out(hub, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(DataError, match="could not be asked") as caught:
        opened(SPEC)
    assert "HF_HUB_OFFLINE=1" in caught.value.hint


def test_a_data_set_may_consist_of_other_files(hub):
    hub.add("own/tables", {"data/train.csv": b"a\n1\n", "data/test.csv": b"a\n2\n3\n"})
    assert opened("own/tables").row(1) == {"a": "3"}
    assert opened("hf://own/tables?split=train").row(0) == {"a": "1"}


async def test_a_built_in_benchmark_reads_its_own_data_set_and_another_split(hub):
    solved = [{"question": "1+1?", "answer": "so\n#### 2"}]
    commit = hub.add(
        "openai/gsm8k",
        {"main/test-00000-of-00001.parquet": parquet(solved), "main/train-00000-of-00001.parquet": parquet(solved * 3)},
        commit=BUILT_IN["gsm8k"].revision,
    )
    hub.add("openai/gsm8k", {"main/test-00000-of-00001.parquet": parquet(solved * 9)})
    env = get_environment("gsm8k")
    await env.prepare()
    assert (await env.seed(0)).expected_answer == "2"
    assert (env.data_identity()["revision"], env.data_identity()["rows"]) == (commit, 1)
    other = get_environment("gsm8k", dataset={"split": "train"})
    await other.prepare()
    assert await other.dataset_size() == 3
    await env.close()
    await other.close()


def test_a_branch_that_moves_during_the_download_is_noticed(hub):
    hub.add("openai/gsm8k", GSM8K)
    moved = GSM8K | {"main/test-00001-of-00002.parquet": parquet(rows("new"))}
    hub.on_file = lambda file: file.endswith("test-00000-of-00002.parquet") and hub.add("openai/gsm8k", moved)
    with pytest.raises(DataError, match="changed while it was downloaded") as caught:
        opened(SPEC)
    assert "revision=" in caught.value.hint


FILES = sorted(GSM8K)


@pytest.mark.parametrize(
    ("files", "spec", "card", "chosen"),
    [
        (FILES, "hf://x/y?config=main&split=train", {}, ["main/train-00000-of-00001.parquet"]),
        (["test.jsonl", "train.jsonl"], "hf://x/y", {}, ["test.jsonl"]),
        (["data/test-00000-of-00001.parquet"], "hf://x/y", {}, ["data/test-00000-of-00001.parquet"]),
        (["all/test/0000.parquet", "all/train/0000.parquet"], "hf://x/y?config=all", {}, ["all/test/0000.parquet"]),
        (["only/test-00000-of-00001.parquet"], "hf://x/y", {}, ["only/test-00000-of-00001.parquet"]),
        (
            ["x/one.csv", "x/two.csv"],
            "hf://x/y?split=dev",
            {"configs": [{"config_name": "default", "data_files": [{"split": "dev", "path": "x/*.csv"}]}]},
            ["x/one.csv", "x/two.csv"],
        ),
        (
            ["a.csv", "b.csv"],
            "hf://x/y?config=b&split=train",
            {"configs": [{"config_name": "a", "data_files": "a.csv"}, {"config_name": "b", "data_files": "b.csv"}]},
            ["b.csv"],
        ),
        (
            ["a.csv", "b.csv"],
            "hf://x/y?split=train",
            {
                "configs": [
                    {"config_name": "a", "data_files": "a.csv"},
                    {"config_name": "b", "data_files": "b.csv", "default": True},
                ]
            },
            ["b.csv"],
        ),
        (
            ["sub/test.csv"],
            "hf://x/y?config=sub",
            {"configs": [{"config_name": "sub", "data_dir": "sub"}]},
            ["sub/test.csv"],
        ),
    ],
)
def test_the_files_of_a_split_are_found_by_card_or_convention(files, spec, card, chosen):
    assert choose_files(files, HubAddress.parse(spec), card) == chosen


@pytest.mark.parametrize(
    ("spec", "said", "hint"),
    [
        ("hf://x/y?config=main&split=tset", "no split 'tset'", "'test'"),
        ("hf://x/y?config=mian", "no configuration 'mian'", "'main'"),
        ("hf://x/y", "several configurations", "main, socratic"),
    ],
)
def test_an_unknown_split_or_configuration_names_those_there_are(spec, said, hint):
    with pytest.raises(DataError, match=said) as caught:
        choose_files(FILES, HubAddress.parse(spec), {})
    assert hint in caught.value.hint


def test_a_data_set_made_by_a_script_is_refused():
    with pytest.raises(DataError, match="made by a script") as caught:
        choose_files(["gsm8k.py", "README.md"], HubAddress.parse("hf://x/y"), {})
    assert "refs/convert/parquet" in caught.value.hint


def test_an_address_with_an_unknown_option_is_refused():
    with pytest.raises(DataError, match="unknown option 'splt'") as caught:
        open_source("hf://x/y?splt=test")
    assert "'split'" in caught.value.hint
    with pytest.raises(DataError, match="not a data set of the hub"):
        open_source("hf://x/y/z/w")
