"""What `import nel` offers: the list is pinned, so that a name is added or taken away on purpose."""

import ast
import tomllib
from pathlib import Path

import pytest

import nel

ROOT = Path(__file__).parents[2]

PUBLIC = {
    "AttemptError",
    "BenchmarkDefinition",
    "ChatSolver",
    "CompletionSolver",
    "Estimate",
    "EvalConfig",
    "EvalEnvironment",
    "EvaluationSettings",
    "FewShot",
    "LoglikelihoodSolver",
    "ModelClient",
    "ModelRequest",
    "ModelResponse",
    "NelError",
    "Outcome",
    "ScorerInput",
    "SeedResult",
    "SelfTest",
    "SkipRow",
    "ServiceSettings",
    "SolveResult",
    "Solver",
    "StepRecord",
    "VLMSolver",
    "VerifyResult",
    "benchmark",
    "get_environment",
    "load_config",
    "merge_results",
    "open_run",
    "register",
    "run_evaluation",
    "scorer",
}


def test_the_public_names_are_these():
    assert set(nel.__all__) == PUBLIC | {"__version__"}


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_a_public_name_is_there_and_is_called_so(name):
    assert getattr(nel, name).__name__ == name
    assert name in dir(nel)


def test_a_star_import_brings_all_of_them():
    names = {}
    exec("from nel import *", names)
    assert names.keys() >= PUBLIC


def test_a_type_checker_sees_the_same_names_in_the_same_modules():
    """The block under TYPE_CHECKING repeats the table, and must not differ from it."""
    tree = ast.parse(Path(nel.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen == nel._PUBLIC


def test_a_name_that_is_not_there_is_an_attribute_error_with_the_nearest():
    with pytest.raises(AttributeError, match="run_evaluation"):
        nel.run_evalution


def test_the_version_is_the_one_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert nel.__version__ == project["version"]
