"""A config is YAML 1.2: what is written is what is meant, and everything else is refused with its line."""

import math

import pytest
from config_texts import MINIMAL, refuse
from hypothesis import given, settings
from hypothesis import strategies as st

from nel.config.load import dump_yaml, load_config
from nel.config.positions import Place, find, parse_path, plain, read_file, read_map, read_value, read_yaml, show_path
from nel.core.errors import ConfigError


def read(text):
    return plain(read_yaml(text, "c.yaml"))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("True", True),
        ("1e3", 1000.0),
        ("1E-3", 0.001),
        ("08", 8),
        ("0777", 777),
        ("0o17", 15),
        ("0x1F", 31),
        ("-5", -5),
        ("1_000", 1000),
        (".5", 0.5),
        (".inf", math.inf),
        ("~", None),
        ("", None),
        ("12:30:00", "12:30:00"),
        ("04:00:00", "04:00:00"),
        ("2024-01-01", "2024-01-01"),
        ("=", "="),
        ("'5'", "5"),
        ("!!str 5", "5"),
        ("1.2.3", "1.2.3"),
    ],
)
def test_a_scalar_means_what_yaml_1_2_says(written, meant):
    value = read(f"a: {written}")["a"]
    assert value == meant
    assert type(value) is type(meant)


def test_not_a_number_is_read_as_such():
    assert math.isnan(read("a: .nan")["a"])


def test_keys_are_texts_as_written():
    assert read("{no: 1, 8: 2, 1e3: 3, null: 4, true: 5}") == {"no": 1, "8": 2, "1e3": 3, "null": 4, "true": 5}


def test_anchors_aliases_and_merge_keys_are_resolved():
    text = """
    base: &base {a: 1, b: 2}
    other: &other {b: 3, c: 4}
    one: {<<: *base, b: 5}
    two: {<<: [*base, *other]}
    again: *base
    """
    value = read(text)
    assert value["one"] == {"a": 1, "b": 5}
    assert value["two"] == {"a": 1, "b": 2, "c": 4}
    assert value["again"] == {"a": 1, "b": 2}


def test_a_merged_key_remembers_the_line_of_its_anchor():
    root = read_yaml("base: &base\n  a: 1\none:\n  <<: *base\n  b: 2\n", "c.yaml")
    assert find(root, ("one", "a")).place == Place("c.yaml", 2)
    assert find(root, ("one", "b")).place == Place("c.yaml", 5)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "second time; first at c.yaml:1"),
        ("a: {b: 1,\n    b: 2}\n", 2, "second time"),
        ("a: 1\n\tb: 2\n", 2, "Indent with spaces"),
        ("a: [1, 2\n", 2, "not YAML"),
        ("a: *gone\n", 1, "undefined alias"),
        ("a: &x\n  b: *x\n", 2, "inside the value that it names"),
        ("a: 1\nb: !env HOME\n", 2, "unknown tag !env"),
        ("a: 1\n---\nb: 2\n", 2, "another document"),
        ("%YAML 1.1\n---\na: no\n", 1, "YAML 1.1 is not read"),
        ("a: 1\n? [b, c]\n: 2\n", 2, "a key is text"),
        ("a: {<<: 5}\n", 1, "merges a map"),
        ("a: !!int x\n", 1, "'x' is no int"),
        ("- a\n- b\n", 1, "this is a list"),
        ("only text\n", 1, "this is text"),
    ],
)
def test_what_is_no_config_is_refused_with_its_line(text, line, reason):
    with pytest.raises(ConfigError) as caught:
        read_map(text, "c.yaml")
    assert (caught.value.file, caught.value.line) == ("c.yaml", line)
    assert reason in str(caught.value)
    assert str(caught.value).startswith(f"c.yaml:{line}: ")


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "---\n"])
def test_an_empty_file_is_refused(text):
    with pytest.raises(ConfigError, match=r"c\.yaml.*: (is empty|a config is a map of keys; this is null)"):
        read_map(text, "c.yaml")


def test_aliases_that_multiply_are_refused():
    levels = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(ConfigError, match="more than 100,000 values"):
        read_map("\n".join(levels), "c.yaml")


def test_files_that_cannot_be_read_say_why(tmp_path):
    (tmp_path / "latin.yaml").write_bytes(b"a: \xff\n")
    for path, reason in [
        (tmp_path / "latin.yaml", "not UTF-8"),
        (tmp_path, "directory"),
        (tmp_path / "gone.yaml", "No such file"),
    ]:
        with pytest.raises(ConfigError, match=reason) as caught:
            read_file(path)
        assert caught.value.file == str(path)


def test_a_byte_order_mark_and_json_are_read(tmp_path):
    path = tmp_path / "c.json"
    path.write_bytes(b'\xef\xbb\xbf{"a": [1, {"b": null}]}')
    assert plain(read_file(path)) == {"a": [1, {"b": None}]}


def test_a_scalar_where_a_map_is_expected_is_refused():
    assert "config:9: output: expected a map, not 'abc'" in str(refuse(MINIMAL + "output: abc"))


def test_a_path_to_a_file_and_its_text_give_the_same_config(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(MINIMAL)
    env = {"HOME": str(tmp_path)}
    assert load_config(path, env=env).config == load_config(MINIMAL, env=env).config
    assert load_config(str(path), env=env).config == load_config(MINIMAL, env=env).config


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=30), inner, max_size=4),
    max_leaves=12,
)


@settings(deadline=None, max_examples=50)
@given(st.dictionaries(st.text(), json_values, max_size=4))
def test_what_is_stored_as_yaml_reads_back_the_same(value):
    assert plain(read_map(dump_yaml(value), "c.yaml")) == value


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.text(st.characters(exclude_characters='"', exclude_categories=["C"])) | st.integers(0, 99), max_size=4)
)
def test_a_shown_path_parses_to_the_same_path(rest):
    path = ("top", *rest)
    assert parse_path(show_path(path)) == path


@pytest.mark.parametrize("text", ["", ".", "a..b", "a.", "[0]", "a[x]", "a[0", 'a"b', "a[-1]"])
def test_what_is_no_path_is_refused(text):
    with pytest.raises(ValueError, match="is no path"):
        parse_path(text)


def test_an_inline_value_keeps_its_place():
    place = Place("command line -O a")
    node = read_value("{b: [1, 2]}", place)
    assert find(node, ("b", 1)).place == place
