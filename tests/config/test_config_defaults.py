"""The user's defaults take effect in every run, below everything else."""

import stat

import pytest
from config_texts import MINIMAL

from nel.config.defaults import defaults_path, get_default, set_default, unset_default
from nel.config.load import load_config
from nel.config.quick import quick_config
from nel.core.errors import ConfigError, UsageError


@pytest.fixture
def env(tmp_path):
    return {"XDG_CONFIG_HOME": str(tmp_path / "xdg"), "HOME": str(tmp_path)}


def test_a_default_takes_effect_until_a_config_says_otherwise(env):
    path = set_default("output.progress_interval", "5", env)
    set_default("max_concurrent_benchmarks", "2", env)
    loaded = load_config(MINIMAL + "max_concurrent_benchmarks: 3\n", env=env)
    assert (loaded.config.output.progress_interval, loaded.config.max_concurrent_benchmarks) == (5, 3)
    assert loaded.place(("output", "progress_interval")) == (str(path), 2)
    assert quick_config("gsm8k", "http://h/v1", env=env).config.output.progress_interval == 5


def test_a_stored_config_is_not_put_on_top_of_them_again(env):
    set_default("output.progress_interval", "5", env)
    assert load_config(MINIMAL, env=env, use_defaults=False).config.output.progress_interval == 60


def test_a_default_service_can_be_named_by_any_config(env):
    set_default("services.judge", "{type: api, url: 'https://j/v1/chat/completions'}", env)
    set_default("services.judge.generation.temperature", "0", env)
    text = MINIMAL.replace("service: m", "service: judge")
    assert load_config(text, env=env).config.services["judge"].generation.temperature == 0


def test_get_and_unset(env):
    set_default("output.report", "[json, console]", env)
    set_default("output.dir", "runs", env)
    assert get_default("output.report", env) == ["json", "console"]
    assert get_default("output", env) == {"report": ["json", "console"], "dir": "runs"}
    unset_default("output.dir", env)
    unset_default("output.report", env)
    with pytest.raises(UsageError, match="no default is set for output"):
        get_default("output", env)
    assert defaults_path(env).read_text() == ""
    assert load_config(MINIMAL, env=env).config.output.dir is None


def test_a_default_that_is_not_set_names_the_nearest(env):
    set_default("output.dir", "runs", env)
    for call in (get_default, unset_default):
        with pytest.raises(UsageError, match=r"no default is set for output\.dirr .*\nDid you mean output\.dir\?"):
            call("output.dirr", env)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("outptu.dir", "x", "no config has the key outptu\nDid you mean 'output'?"),
        ("output.dri", "x", "no config has the key output.dri\nDid you mean 'dir'?"),
        ("services.m.ulr", "x", "no config has the key services.m.ulr\nDid you mean 'url'?"),
        ("output.progress_interval", "soon", "expected a number, not 'soon'"),
        ("output.report", "[pdf]", "'pdf' is none of"),
        ("output", "{dirr: x}", "unknown key; did you mean `dir`?"),
        ("cluster", "{type: locale}", "unknown type 'locale'; did you mean 'local'?"),
        ("benchmarks", "[]", "`benchmarks` has no default"),
        ("output.dir", "", "no value\n`nel config unset output.dir`"),
        ("output.dir", "{", "not YAML"),
    ],
)
def test_a_bad_default_is_refused_and_nothing_is_written(env, key, value, reason):
    with pytest.raises(ConfigError) as caught:
        set_default(key, value, env)
    assert reason in str(caught.value)
    assert f"nel config set {key}" in str(caught.value)
    assert not defaults_path(env).exists()


def test_a_list_is_set_as_a_whole(env):
    with pytest.raises(UsageError, match="set the whole list"):
        set_default("output.report[0]", "json", env)


def test_comments_and_order_survive_a_change(env):
    path = defaults_path(env)
    path.parent.mkdir(parents=True)
    path.write_text("# mine\noutput:\n  dir: runs  # here\n  report: [json]\n")
    set_default("output.progress_interval", "5", env)
    assert path.read_text() == "# mine\noutput:\n  dir: runs  # here\n  report: [json]\n  progress_interval: 5\n"


def test_a_variable_may_be_a_default(env):
    set_default("_scratch", "/scratch", env)
    set_default("output.dir", "${._scratch}/${WHO}", env)
    assert load_config(MINIMAL, env={**env, "WHO": "me"}).config.output.dir == "/scratch/me"


def test_a_number_may_come_from_the_environment(env):
    set_default("output.progress_interval", "${EVERY}", env)
    assert load_config(MINIMAL, env={**env, "EVERY": "7"}).config.output.progress_interval == 7


def test_a_file_that_holds_a_secret_is_for_its_owner_alone(env):
    path = set_default("output.dir", "runs", env)
    before = stat.S_IMODE(path.stat().st_mode)
    assert before != 0o600
    set_default("services.model.api_key", "correct-horse-battery", env)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    loaded = quick_config("gsm8k", "http://h/v1", env=env)
    assert loaded.config.services["model"].api_key == "correct-horse-battery"
    assert "correct-horse-battery" not in loaded.to_yaml()


def test_a_damaged_defaults_file_is_refused_with_its_line(env):
    path = defaults_path(env)
    path.parent.mkdir(parents=True)
    path.write_text("output:\n  dirr: x\n")
    with pytest.raises(ConfigError, match=rf"{path}:2: output\.dirr: unknown key"):
        load_config(MINIMAL, env=env)
    path.write_text("benchmarks: []\n")
    with pytest.raises(ConfigError, match="cannot hold this key"):
        load_config(MINIMAL, env=env)
