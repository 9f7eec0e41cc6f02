"""How a problem is attempted."""

from nel.core.loading import lazy_export

__getattr__, __dir__ = lazy_export(
    __name__,
    {
        "BaseSolver": "nel.solvers.base",
        "ChatSolver": "nel.solvers.simple",
        "CompletionSolver": "nel.solvers.simple",
        "LoglikelihoodSolver": "nel.solvers.loglikelihood",
        "SolveResult": "nel.solvers.base",
        "Solver": "nel.solvers.base",
        "VLMSolver": "nel.solvers.simple",
        "simple_solver": "nel.solvers.simple",
    },
)
