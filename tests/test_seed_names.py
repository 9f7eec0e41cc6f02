"""Every key type of the architecture that NEL implements has its name and its package, or is known to come later."""

import re
from importlib import import_module
from pathlib import Path

import pytest

SEED = Path(__file__).resolve().parents[2] / "shared" / "seeds" / "model-evaluation.md"

KEY_TYPES = {
    "environments": ["EvalEnvironment", "SeedResult", "VerifyResult", "BenchmarkDefinition"],
    "benchmarks": [],
    "solvers": [
        "Solver",
        "ChatSolver",
        "VLMSolver",
        "HarborSolver",
        "GymSolver",
        "ReActSolver",
        "NatSolver",
        "OpenClawSolver",
    ],
    "engine": ["run_evaluation", "ModelClient", "CheckpointManager", "InspectExporter", "WandBExporter"],
    "config": [
        "EvalConfig",
        "parse_eval_config",
        "compose_config",
        "services.py",
        "sandboxes.py",
        "solvers.py",
        "scoring.py",
        "clusters.py",
    ],
    "orchestration": ["run_local", "DeployConfig", "generate_sbatch", "start_proxy"],
    "serving": ["generate_app"],
    "executors": ["Executor", "get_executor", "detect_executor", "ProcessState"],
    "sandbox": [
        "Sandbox",
        "SandboxSpec",
        "SandboxManager",
        "ECSFargateSandbox",
        "NoSandbox",
        "StatefulSandbox",
        "StatelessSandbox",
    ],
    "interceptors": ["resolve_interceptors", "BaseInterceptor"],
    "scoring": ["exact_match", "code_sandbox", "needs_judge"],
    "observability": ["StepRecord", "ModelResponse", "RuntimeStats", "ArtifactCollector"],
    "metrics": ["pass_at_k", "bootstrap_ci", "category_breakdown"],
}

LATER = {
    "solvers": {"HarborSolver", "GymSolver", "ReActSolver", "NatSolver", "OpenClawSolver"},
    "orchestration": {"generate_sbatch", "start_proxy"},
    "serving": {"generate_app"},
    "sandbox": {"ECSFargateSandbox", "NoSandbox", "StatefulSandbox", "StatelessSandbox"},
    "interceptors": {"resolve_interceptors"},
}

ELSEWHERE = {
    ("engine", "ModelClient"): "nel.inference",
    ("engine", "InspectExporter"): "nel.exporters",
    ("engine", "WandBExporter"): "nel.exporters",
    ("interceptors", "BaseInterceptor"): "nel.inference",
}
"""The house has floors that the architecture's table does not draw: these stand on another one."""


def package_of(package, name):
    return ELSEWHERE.get((package, name), f"nel.{package}")


NOW = [
    (package, name) for package, names in KEY_TYPES.items() for name in names if name not in LATER.get(package, set())
]


@pytest.mark.parametrize(("package", "name"), NOW, ids=[f"{package}.{name}" for package, name in NOW])
def test_a_key_type_is_importable_from_its_package(package, name):
    if name.endswith(".py"):
        import_module(f"nel.{package}.{name.removesuffix('.py')}")
    else:
        assert getattr(import_module(package_of(package, name)), name).__name__ == name


@pytest.mark.parametrize(
    ("package", "name"), [(package, name) for package, names in LATER.items() for name in sorted(names)]
)
def test_a_key_type_that_comes_later_is_taken_off_this_list_when_it_arrives(package, name):
    try:
        module = import_module(package_of(package, name))
    except ModuleNotFoundError:
        module = None
    assert not hasattr(module, name)


def test_this_list_is_the_one_of_the_architecture():
    if not SEED.is_file():
        pytest.skip(f"the architecture document is not beside the repository ({SEED.name})")
    assert seed_key_types(SEED.read_text(encoding="utf-8")) == {
        package: set(names) for package, names in KEY_TYPES.items()
    }


def seed_key_types(text):
    """Package to the names in backticks of the "Key types" column, without what stands in brackets."""
    found = {}
    table = text.partition("## Package Map")[2].partition("\n## ")[0]
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        package = re.fullmatch(r"`(\w+)/`", cells[0])
        if package and package[1] != "cli":  # its key types are commands
            names = re.findall(r"`([^`]+)`", re.sub(r"\(.*?\)(?!`)", "", cells[2]))
            found[package[1]] = {name.removesuffix("()") for name in names}
    return found
