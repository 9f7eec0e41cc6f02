"""NEL: evaluate language models, agents and world models, and trust the number.

Everything public is imported from here; a name loads its module when it is first used, so that `import nel` is quick.
"""

from typing import TYPE_CHECKING

from nel.core.loading import lazy_export

if TYPE_CHECKING:
    from nel.config.eval_config import EvalConfig as EvalConfig
    from nel.config.load import load_config as load_config
    from nel.core.errors import AttemptError as AttemptError
    from nel.core.errors import NelError as NelError
    from nel.engine.merge import merge_results as merge_results
    from nel.engine.run import run_evaluation as run_evaluation
    from nel.engine.settings import EvaluationSettings as EvaluationSettings
    from nel.environments.base import EvalEnvironment as EvalEnvironment
    from nel.environments.base import SeedResult as SeedResult
    from nel.environments.base import VerifyResult as VerifyResult
    from nel.environments.decorators import benchmark as benchmark
    from nel.environments.decorators import register as register
    from nel.environments.decorators import scorer as scorer
    from nel.environments.definition import BenchmarkDefinition as BenchmarkDefinition
    from nel.environments.fewshot import FewShot as FewShot
    from nel.environments.registry import get_environment as get_environment
    from nel.environments.rows import SkipRow as SkipRow
    from nel.environments.self_test import SelfTest as SelfTest
    from nel.inference.client import ModelClient as ModelClient
    from nel.inference.request import ModelRequest as ModelRequest
    from nel.inference.settings import ServiceSettings as ServiceSettings
    from nel.metrics.estimate import Estimate as Estimate
    from nel.observability.records import ModelResponse as ModelResponse
    from nel.observability.records import Outcome as Outcome
    from nel.observability.records import StepRecord as StepRecord
    from nel.reporting.run_view import open_run as open_run
    from nel.scoring.sample import ScorerInput as ScorerInput
    from nel.solvers.base import Solver as Solver
    from nel.solvers.base import SolveResult as SolveResult
    from nel.solvers.loglikelihood import LoglikelihoodSolver as LoglikelihoodSolver
    from nel.solvers.simple import ChatSolver as ChatSolver
    from nel.solvers.simple import CompletionSolver as CompletionSolver
    from nel.solvers.simple import VLMSolver as VLMSolver

__version__ = "0.1.0"

_PUBLIC = {
    "AttemptError": "nel.core.errors",
    "BenchmarkDefinition": "nel.environments.definition",
    "ChatSolver": "nel.solvers.simple",
    "CompletionSolver": "nel.solvers.simple",
    "Estimate": "nel.metrics.estimate",
    "EvalConfig": "nel.config.eval_config",
    "EvalEnvironment": "nel.environments.base",
    "EvaluationSettings": "nel.engine.settings",
    "FewShot": "nel.environments.fewshot",
    "LoglikelihoodSolver": "nel.solvers.loglikelihood",
    "ModelClient": "nel.inference.client",
    "ModelRequest": "nel.inference.request",
    "ModelResponse": "nel.observability.records",
    "NelError": "nel.core.errors",
    "Outcome": "nel.observability.records",
    "ScorerInput": "nel.scoring.sample",
    "SeedResult": "nel.environments.base",
    "SelfTest": "nel.environments.self_test",
    "ServiceSettings": "nel.inference.settings",
    "SkipRow": "nel.environments.rows",
    "SolveResult": "nel.solvers.base",
    "Solver": "nel.solvers.base",
    "StepRecord": "nel.observability.records",
    "VLMSolver": "nel.solvers.simple",
    "VerifyResult": "nel.environments.base",
    "benchmark": "nel.environments.decorators",
    "get_environment": "nel.environments.registry",
    "load_config": "nel.config.load",
    "merge_results": "nel.engine.merge",
    "open_run": "nel.reporting.run_view",
    "register": "nel.environments.decorators",
    "run_evaluation": "nel.engine.run",
    "scorer": "nel.environments.decorators",
}

__all__ = ["__version__", *_PUBLIC]  # noqa: PLE0604 - the names of the table

__getattr__, __dir__ = lazy_export(__name__, _PUBLIC)
