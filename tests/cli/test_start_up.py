"""Starting is quick because little is imported: what `nel --help`, `nel list` and `import nel` may load, held here.

Times are measured by `make bench`; a set of modules does not depend on the machine.
"""

import json
import subprocess
import sys

import pytest

OF_NEL = {
    "nel",
    "nel.core",
    "nel.core.errors",
    "nel.core.loading",
}
OF_HELP = OF_NEL | {"nel.cli", "nel.cli.lazy", "nel.cli.main"}
SLOW_STANDARD_MODULES = {
    "asyncio",
    "concurrent.futures",
    "email",
    "http.client",
    "importlib.metadata",
    "logging",
    "multiprocessing",
    "ssl",
    "unittest",
    "urllib.request",
    "xml",
    "zipfile",
}
ASK = """
import sys, json
before = set(sys.modules)
try:
    {code}
finally:
    print(json.dumps(sorted(set(sys.modules) - before)), file=sys.stderr)
"""


def modules_after(code):
    done = subprocess.run([sys.executable, "-c", ASK.format(code=code)], capture_output=True, text=True, check=True)
    return set(json.loads(done.stderr.splitlines()[-1]))


def foreign(modules):
    """Top-level packages that are neither of Python nor of NEL."""
    tops = {name.partition(".")[0] for name in modules}
    return {top for top in tops if top not in sys.stdlib_module_names and not top.startswith("_")} - {"nel"}


def own(modules):
    return {name for name in modules if name.partition(".")[0] == "nel"}


def test_import_nel_loads_nothing_but_the_table_of_names():
    modules = modules_after("import nel")
    assert own(modules) == OF_NEL
    assert foreign(modules) == set()
    assert not modules & SLOW_STANDARD_MODULES


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_loads_click_alone(arguments):
    modules = modules_after(f"from nel.cli.main import main; main({arguments})")
    assert own(modules) == OF_HELP
    assert foreign(modules) == {"click"}
    assert not modules & SLOW_STANDARD_MODULES


def test_the_help_of_a_group_loads_click_alone():
    modules = modules_after("from nel.cli.main import main; main(['eval', '--help'])")
    assert own(modules) == OF_HELP | {"nel.cli.eval"}
    assert foreign(modules) == {"click"}


def test_list_loads_the_table_and_no_benchmark():
    modules = modules_after("from nel.cli.main import main; main(['list'])")
    assert own(modules) == OF_HELP | {
        "nel.cli.catalog",
        "nel.cli.options",
        "nel.cli.output",
        "nel.environments",
        "nel.environments.catalog",
        "nel.environments.registry",
    }
    assert foreign(modules) == {"click"}
    assert not modules & {"asyncio", "ssl", "multiprocessing", "unittest"}
