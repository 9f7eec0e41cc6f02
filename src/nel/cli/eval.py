"""`nel eval`: the commands around a run directory."""

from nel.cli.lazy import Entry, LazyGroup

COMMANDS = {
    "run": Entry("nel.cli.run:run", "Run benchmarks against a model."),
    "status": Entry("nel.cli.runs:status", "Tell how far a run is."),
    "logs": Entry("nel.cli.runs:logs", "Print, or follow, the log of a run."),
    "stop": Entry("nel.cli.runs:stop", "Stop a run; what it has measured stays."),
    "resume": Entry("nel.cli.runs:resume", "Continue a run that was stopped, killed or had errors."),
    "report": Entry("nel.cli.report:report", "Print or write the report of a run."),
    "merge": Entry("nel.cli.merge:merge", "Make one run of the shards in a directory."),
    "rescore": Entry("nel.cli.rescore:rescore", "Grade the stored answers again, without asking the evaluated model."),
}

group = LazyGroup(
    name="eval", entries=COMMANDS, help="Run evaluations; follow, resume, merge, re-score and report them."
)
