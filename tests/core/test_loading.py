import json
import subprocess
import sys
import textwrap

import pytest

from nel.core.errors import LoadError, MissingDependencyError
from nel.core.loading import entry_points, load_file, load_object, require


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(textwrap.dedent(text))
        return path

    return write


@pytest.fixture
def package(write, tmp_path, monkeypatch):
    """An importable package `nel_test_plugin`."""
    write("nel_test_plugin/__init__.py", "")
    write("nel_test_plugin/solver.py", "class Mine:\n    class Inner:\n        pass\n")
    write("nel_test_plugin/needs.py", "import nel_test_not_there\n")
    write("nel_test_plugin/broken.py", "\nvalue = 1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in [name for name in sys.modules if name.startswith("nel_test_plugin")]:
        del sys.modules[name]


def test_an_object_is_loaded_from_a_module_or_a_file(package, write):
    file = write("mine.py", "class Solver:\n    kinds = ('a',)\n")
    assert load_object("json:decoder.JSONDecoder", what="solver") is json.decoder.JSONDecoder
    assert load_object("nel_test_plugin.solver:Mine.Inner", what="solver").__name__ == "Inner"
    assert load_object(f"{file}:Solver.kinds", what="solver") == ("a",)
    assert load_object(f"{file}:Solver", what="solver") is load_object(f"{file}:Solver", what="scorer")


@pytest.mark.parametrize(
    ("spec", "message", "hint"),
    [
        ("nel_test_plugin.solver:Mime", "nel_test_plugin.solver has no 'Mime'", "Did you mean Mine?"),
        ("nel_test_plugin.solver:Mine.Iner", "nel_test_plugin.solver.Mine has no 'Iner'", "Did you mean Inner?"),
        ("nel_test_plugin.solvr:Mine", "there is no module 'nel_test_plugin.solvr'", "mean nel_test_plugin.solver?"),
        ("nel_test_plugim:Mine", "there is no module 'nel_test_plugim'", "Did you mean nel_test_plugin"),
        ("nel_test_plugin.solver.deep:Mine", "there is no module 'nel_test_plugin.solver.deep'", None),
        ("nel_test_plugin.needs:x", "needs 'nel_test_not_there', which is not installed", None),
        ("nel_test_plugin.broken:x", r"broken\.py:2: ZeroDivisionError: division by zero", None),
        ("nel_test_plugin.solver.Mine", "names no object", "e.g. nel_test_plugin.solver:Mine"),
        ("mine.py", "names no object", r"e.g. mine.py:name"),
        ("", "names no object", "package.module:name"),
        ("json:", "names no object", ":name"),
        (":x", "names no object", ":name"),
        ("not a module:x", "'not a module' is neither a module nor a .py file", None),
        (".relative:x", "neither a module nor", None),
        ("missing.py:x", "missing.py: No such file", None),
    ],
)
def test_what_cannot_be_loaded_is_told_with_the_spec_the_reason_and_near_names(package, spec, message, hint):
    with pytest.raises(LoadError, match=message) as caught:
        load_object(spec, what="solver")
    assert caught.value.message.startswith(f"solver {spec!r}")
    assert (hint is None) or hint in caught.value.hint


def test_a_module_in_the_current_folder_is_pointed_to_as_a_file(write, tmp_path, monkeypatch):
    write("mine.py", "x = 1")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LoadError) as caught:
        load_object("mine:x", what="scorer")
    assert caught.value.hint == "For the file in this folder write ./mine.py:name"
    assert load_object("./mine.py:x", what="scorer") == 1


def test_a_missing_extra_behind_a_lazy_name_is_a_load_error(write, tmp_path, monkeypatch):
    write("nel_test_lazy.py", "def __getattr__(name):\n    import nel_test_not_there\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(LoadError, match="cannot give 'x': No module named 'nel_test_not_there'"):
        load_object("nel_test_lazy:x", what="exporter")
    del sys.modules["nel_test_lazy"]


def test_a_file_is_executed_once_per_content(write):
    file = write("counted.py", "runs = []\nruns.append(1)\n")
    first = load_file(file)
    assert load_file(file) is first
    assert first.runs == [1]
    write("counted.py", "runs = 'new'\n")
    assert load_file(file).runs == "new"
    assert load_file(file) is not first


def test_equal_files_in_two_folders_are_two_modules(write):
    one, other = write("one/same.py", "x = []"), write("other/same.py", "x = []")
    assert load_file(one) is not load_file(other)
    assert load_file(one).__file__ == str(one)


def test_a_file_imports_its_neighbours_and_not_those_of_another_folder(write):
    for folder in ("first", "second"):
        write(f"{folder}/nel_test_helpers.py", f"where = {folder!r}")
        write(f"{folder}/bench.py", "from nel_test_helpers import where")
    path = list(sys.path)
    assert load_file(write("first/bench.py", "from nel_test_helpers import where")).where == "first"
    assert load_file(write("second/bench.py", "from nel_test_helpers import where")).where == "second"
    assert sys.path == path


def test_classes_of_a_file_work_as_those_of_a_module(write):
    file = write(
        "shapes.py",
        """
        from __future__ import annotations
        import dataclasses, inspect

        @dataclasses.dataclass
        class Point:
            x: int

        source = inspect.getsource(Point)
        """,
    )
    module = load_file(file)
    assert module.Point(1) == module.Point(1)
    assert "class Point" in module.source
    assert sys.modules[module.__name__] is module


def test_the_future_imports_of_nel_do_not_leak_into_a_users_file(write):
    module = load_file(write("annotated.py", "def f(x: int): ...\n"))
    assert module.f.__annotations__ == {"x": int}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\nraise ValueError('bad row')\n", r"bad\.py:2: ValueError: bad row"),
        ("x = (\n", r"bad\.py:1: SyntaxError"),
        ("import json\njson.loads('{')\n", r"bad\.py:2: JSONDecodeError"),
        ("import nel_test_not_there\n", r"bad\.py:1: ModuleNotFoundError: No module named 'nel_test_not_there'"),
        ("raise SystemExit(0)\n", r"bad\.py:1: SystemExit: 0"),
    ],
)
def test_a_file_that_fails_is_told_with_its_line_and_leaves_no_module(write, text, message):
    before, path = set(sys.modules), list(sys.path)
    with pytest.raises(LoadError, match=message):
        load_file(write("bad.py", text))
    assert not [name for name in set(sys.modules) - before if "bad" in name]
    assert sys.path == path


def test_an_error_of_nel_inside_a_file_keeps_its_own_words(write):
    file = write(
        "needs.py",
        "from nel.core.loading import require\nrequire('nel_test_not_there', what='The scorer', extra='vlm')\n",
    )
    with pytest.raises(MissingDependencyError, match=r"pip install 'nel\[vlm\]'"):
        load_file(file)


def test_a_missing_file_comes_with_its_near_namesakes(write, tmp_path):
    write("benchmark.py", "")
    with pytest.raises(LoadError, match="No such file") as caught:
        load_file(tmp_path / "benchmrk.py")
    assert caught.value.hint == "Did you mean benchmark.py?"
    with pytest.raises(LoadError, match="Is a directory"):
        load_file(tmp_path)


def install(tmp_path, distribution, text):
    folder = tmp_path / f"{distribution}-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(text)


def test_plug_ins_are_listed_without_being_imported(tmp_path, monkeypatch):
    install(tmp_path, "toy", "[nel.test]\ntoy = nel_test_not_there:Toy\nother = nel_test_not_there:Other\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert entry_points("nel.test") == {"toy": "nel_test_not_there:Toy", "other": "nel_test_not_there:Other"}
    assert entry_points("nel.nothing") == {}


def test_two_plug_ins_of_one_name_are_refused(tmp_path, monkeypatch):
    install(tmp_path, "one", "[nel.test]\ntoy = a:Toy\n")
    install(tmp_path, "two", "[nel.test]\ntoy = b:Toy\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(LoadError, match=r"plug-in 'toy' of nel\.test is declared twice: [ab]:Toy and [ab]:Toy"):
        entry_points("nel.test")


@pytest.fixture
def lazy(write, tmp_path, monkeypatch):
    write("nel_test_pkg/heavy.py", "loaded = True\ndef run(): return 'ran'\n")
    write(
        "nel_test_pkg/__init__.py",
        """
        from nel.core.loading import lazy_export
        version = "1"
        __getattr__, __dir__ = lazy_export(__name__, {"run": "nel_test_pkg.heavy", "gone": "nel_test_not_there"})
        """,
    )
    monkeypatch.syspath_prepend(tmp_path)
    import nel_test_pkg

    yield nel_test_pkg
    for name in [name for name in sys.modules if name.startswith("nel_test_pkg")]:
        del sys.modules[name]


def test_a_lazy_name_loads_its_module_on_first_use(lazy):
    assert {"run", "gone", "version"} <= set(dir(lazy))
    assert "nel_test_pkg.heavy" not in sys.modules
    assert lazy.run() == "ran"
    assert vars(lazy)["run"] is lazy.run
    with pytest.raises(ModuleNotFoundError, match="nel_test_not_there"):
        lazy.gone


def test_an_unknown_lazy_name_is_an_attribute_error_with_near_names(lazy):
    with pytest.raises(AttributeError, match=r"'nel_test_pkg' has no attribute 'rum'\. Did you mean run\?"):
        lazy.rum
    with pytest.raises(ImportError, match="cannot import name 'zzzz'"):
        from nel_test_pkg import zzzz  # noqa: F401
    assert not hasattr(lazy, "zzzz")


def test_require_gives_the_module_or_the_command_that_installs_it():
    assert require("json.decoder", what="x", extra="y") is json.decoder
    for module in ("nel_test_not_there", "nel_test_not_there.deep"):
        with pytest.raises(MissingDependencyError) as caught:
            require(module, what="The exporter", extra="wandb")
        assert str(caught.value) == (
            f"The exporter needs {module}, which is not installed.\nInstall it with: pip install 'nel[wandb]'"
        )


def test_require_tells_a_broken_package_from_a_missing_one(package, write):
    with pytest.raises(LoadError, match=r"needs nel_test_plugin\.needs, which lacks 'nel_test_not_there'"):
        require("nel_test_plugin.needs", what="The exporter", extra="x")
    write("nel_test_plugin/elf.py", "raise ImportError('libcuda.so.1: cannot open shared object file')")
    with pytest.raises(LoadError, match="installed but cannot be imported: libcuda"):
        require("nel_test_plugin.elf", what="The exporter", extra="x")


def test_loading_costs_little_at_start_up():
    heavy = {"difflib", "inspect", "pkgutil", "traceback", "importlib.metadata", "asyncio", "msgspec"}
    program = "import sys; before = set(sys.modules); import nel.core.loading; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    loaded = set(done.stdout.split())
    assert "nel.core.loading" in loaded
    assert not heavy & loaded
