"""Configs are built on each other; every value still knows its own file and line."""

import pytest
from config_texts import MINIMAL, NO_HOME, write
from hypothesis import given, settings
from hypothesis import strategies as st

from nel.config.compose import KEEPS_NULL, compose_config, merge, settle
from nel.config.load import load_config
from nel.config.positions import Place, node_of, plain
from nel.core.errors import ConfigError


def compose(folder, files, env=None):
    return compose_config(write(folder, files), env={**NO_HOME, **(env or {})})


def test_a_child_changes_only_what_it_names(tmp_path):
    composed = compose(
        tmp_path,
        {
            "child.yaml": "defaults: [{_base_: base}]\noutput: {dir: there}\nbenchmarks: [{name: mmlu}]\n",
            "base.yaml": "output: {dir: here, report: [json]}\nbenchmarks: [{name: gsm8k}, {name: other}]\n",
        },
    )
    assert composed == {"output": {"dir": "there", "report": ["json"]}, "benchmarks": [{"name": "mmlu"}]}


@pytest.mark.parametrize("body", ["_base_: base\n", "_base_: [base]\n", "defaults:\n  - _base_: base.yaml\n"])
def test_a_base_is_named_with_or_without_its_ending_in_any_form(tmp_path, body):
    assert compose(tmp_path, {"child.yaml": body, "base.yaml": "_x: 1\n"}) == {"_x": 1}


def test_a_group_entry_is_placed_under_its_key(tmp_path):
    composed = compose(
        tmp_path,
        {
            "c.yaml": "defaults: [services/small, clusters/here, output/lustre]\n",
            "conf/services/small.yaml": "small: {type: api}\n",
            "conf/clusters/here.yml": "type: local\n",
            "conf/output/lustre.json": '{"dir": "/lustre"}',
        },
    )
    assert composed == {
        "services": {"small": {"type": "api"}},
        "cluster": {"type": "local"},
        "output": {"dir": "/lustre"},
    }


def test_the_body_comes_last_unless_self_says_where(tmp_path):
    files = {"conf/output/x.yaml": "dir: group\n"}
    last = compose(tmp_path, {"last.yaml": "defaults: [output/x]\noutput: {dir: body}\n", **files})
    first = compose(tmp_path, {"first.yaml": "defaults: [_self_, output/x]\noutput: {dir: body}\n", **files})
    assert (last["output"]["dir"], first["output"]["dir"]) == ("body", "group")


def test_null_takes_a_key_away_but_not_the_shuffle_seed(tmp_path):
    composed = compose(
        tmp_path,
        {
            "child.yaml": "_base_: base\noutput: null\n_v: {a: null}\nshuffle_seed: null\n",
            "base.yaml": "output: {dir: x}\n_v: {a: 1, b: 2}\nshuffle_seed: 7\n",
        },
    )
    assert composed == {"_v": {"b": 2}, "shuffle_seed": None}


def test_what_null_took_away_does_not_come_back(tmp_path):
    composed = compose(
        tmp_path,
        {
            "c.yaml": "defaults: [{_base_: low}, {_base_: high}]\n",
            "low.yaml": "_v: {old: 1}\n",
            "high.yaml": "_base_: middle\n_v: {new: 2}\n",
            "middle.yaml": "_v: null\n",
        },
    )
    assert composed == {"_v": {"new": 2}}


def test_a_diamond_is_no_circle(tmp_path):
    composed = compose(
        tmp_path,
        {
            "c.yaml": "defaults: [{_base_: left}, {_base_: right}]\n",
            "left.yaml": "_base_: top\n_left: 1\n",
            "right.yaml": "_base_: top\n_right: 1\n",
            "top.yaml": "_top: 1\n",
        },
    )
    assert composed == {"_top": 1, "_left": 1, "_right": 1}


def test_a_deep_diamond_reads_each_file_once(tmp_path):
    files = {"c0.yaml": "defaults: [{_base_: c1}, {_base_: c1}]\n"}
    files |= {f"c{n}.yaml": f"defaults: [{{_base_: c{n + 1}}}, {{_base_: c{n + 1}}}]\n" for n in range(1, 40)}
    assert compose(tmp_path, {**files, "c40.yaml": "_x: 1\n"}) == {"_x": 1}


def test_a_circle_is_refused_with_its_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = {
        "a.yaml": "_x: 1\n_base_: b\n",
        "b.yaml": "defaults: [services/s]\n",
        "conf/services/s.yaml": "_base_: a\n",
    }
    with pytest.raises(ConfigError, match=r"circle: a\.yaml -> b\.yaml -> conf/services/s\.yaml -> a\.yaml"):
        compose(tmp_path, files)


def test_entries_are_found_beside_any_config_that_led_there_then_at_the_user(tmp_path):
    composed = compose(
        tmp_path,
        {
            "mine/c.yaml": "defaults: [{_base_: ../theirs/base}, output/user, clusters/local]\n",
            "theirs/base.yaml": "defaults: [services/theirs, sandboxes/nemo]\n",
            "theirs/conf/services/theirs.yaml": "defaults: [services/mine]\nt: {a: 1}\n",
            "mine/conf/services/mine.yaml": "m: {a: 2}\n",
            "home/.config/nel/conf/output/user.yaml": "dir: user\n",
            "home/.config/nemo-evaluator/conf/output/user.yaml": "dir: lower\n",
            "home/.config/nemo-evaluator/conf/sandboxes/nemo.yaml": "s: {type: none}\n",
        },
        env={"HOME": str(tmp_path / "home")},
    )
    assert composed == {
        "services": {"m": {"a": 2}, "t": {"a": 1}},
        "sandboxes": {"s": {"type": "none"}},
        "output": {"dir": "user"},
        "cluster": {"type": "local"},
    }


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("defaults: [services/smal]\n", r"c\.yaml:1: services/smal is not there; did you mean 'small'\?"),
        ("_x: 1\ndefaults:\n  - {_base_: gone}\n", r"c\.yaml:3: base config 'gone' is not there"),
        ("defaults: services/small\n", "is a list of configs, not text"),
        ("defaults: [nogroup]\n", "Write group/name"),
        ("defaults: [{services: small}]\n", "expected group/name"),
        ("defaults: [5]\n", "expected the name of a config, not a number"),
        ("defaults: [_self_, _self_]\n", "twice"),
        ("defaults: [services/wrapped]\n", r"wrapped\.yaml:2: the content of `services` comes without the key"),
    ],
)
def test_a_bad_entry_is_refused_with_its_line(tmp_path, body, reason):
    files = {
        "c.yaml": body,
        "conf/services/small.yaml": "s: {type: api}\n",
        "conf/services/wrapped.yaml": "# x\nservices: {s: {type: api}}\n",
    }
    with pytest.raises(ConfigError, match=reason):
        compose(tmp_path, files)


def test_every_value_remembers_its_own_file_and_line(tmp_path):
    path = write(
        tmp_path,
        {
            "c.yaml": "defaults:\n  - services/m\n  - _base_: base\n\noutput:\n  dir: out\n",
            "conf/services/m.yaml": "m:\n  type: api\n  url: https://h/v1/chat/completions\n",
            "base.yaml": "benchmarks:\n  - name: gsm8k\n    solver:\n      type: simple\n      service: m\n",
        },
    )
    loaded = load_config(path, env=NO_HOME, overrides=["output.report=[json]"])
    here = str(tmp_path)
    assert loaded.place(("services", "m", "url")) == (f"{here}/conf/services/m.yaml", 3)
    assert loaded.place(("benchmarks", 0, "solver", "service")) == (f"{here}/base.yaml", 5)
    assert loaded.place(("output", "dir")) == (f"{here}/c.yaml", 6)
    assert loaded.place(("output", "report", 0)) == ("command line -O output.report", None)
    assert loaded.place(("benchmarks", 0, "params", "level")) == (f"{here}/base.yaml", 2)
    assert [file.name for file in loaded.files] == ["c.yaml", "m.yaml", "base.yaml"]


def test_settings_of_plug_ins_can_be_refused_with_their_line():
    loaded = load_config(MINIMAL + "    params:\n      level: 9\n", env=NO_HOME)
    error = loaded.error(("benchmarks", 0, "params", "level"), "there is no level 9", "Levels: 1 to 5.")
    assert str(error) == "config:10: benchmarks[0].params.level: there is no level 9\nLevels: 1 to 5."


trees = st.recursive(
    st.none() | st.integers(0, 3) | st.lists(st.integers(0, 2), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
maps = st.dictionaries(st.sampled_from("abc"), trees, max_size=3)


def layer(value, name="x"):
    return node_of(value, Place(name, 1))


@settings(deadline=None, max_examples=80)
@given(maps, maps, maps)
def test_merging_is_associative(low, middle, high):
    left = merge(merge(layer(low), layer(middle)), layer(high))
    right = merge(layer(low), merge(layer(middle), layer(high)))
    assert left == right


@settings(deadline=None, max_examples=50)
@given(maps)
def test_an_empty_layer_changes_nothing(value):
    assert plain(merge(layer({}), layer(value))) == value
    assert plain(merge(layer(value), layer({}))) == value


@settings(deadline=None, max_examples=50)
@given(maps, maps)
def test_positions_survive_merges(low, high):
    merged = merge(layer(low, "low"), layer(high, "high"))
    for name, node in merged.value.items():
        if not isinstance(node.value, dict):
            assert node.place.file == ("high" if name in high else "low")


@settings(deadline=None, max_examples=50)
@given(maps, maps)
def test_a_key_that_null_takes_away_is_gone(low, high):
    settled = plain(settle(merge(layer(low), layer(high))))
    for name, value in high.items():
        if value is None and low.get(name) is not None:
            assert name not in settled


def test_the_keys_that_keep_a_null_are_those_whose_null_is_no_default():
    from nel.config.base import takes_null
    from nel.config.schema import all_models, rows

    meaningful = {
        row.name
        for model in all_models()
        for row in rows(model)
        if takes_null(row.field.annotation)
        and not row.field.is_required()
        and row.field.get_default(call_default_factory=True) is not None
    }
    assert meaningful == KEEPS_NULL
