"""`nel`: the entry point, the table of commands, and the one place where an error becomes an exit code."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import click

from nel.cli.lazy import Entry, LazyGroup
from nel.core.errors import ExitCode, NelError

_READER_GONE = 141
"""What a shell reports of any program whose reader went away (128 + SIGPIPE)."""

COMMANDS = {
    "eval": Entry("nel.cli.eval:group", "Run evaluations; follow, resume, merge, re-score and report them."),
    "compare": Entry("nel.cli.compare:compare", "Compare a candidate with a baseline, problem by problem."),
    "gate": Entry("nel.cli.gate:gate", "Decide on a release by a policy, candidate against baseline."),
    "plan": Entry(
        "nel.cli.plan_power:plan", "Plan a comparison: problems and repeats that show a drop, and their cost."
    ),
    "list": Entry("nel.cli.catalog:list_benchmarks", "List the benchmarks that can be run by name."),
    "view": Entry("nel.cli.view:view", "Show runs in the browser, until Ctrl-C."),
    "export": Entry("nel.cli.export:export", "Hand runs over to another tool."),
    "validate": Entry("nel.cli.validate:validate", "Try a few problems end to end before a long run."),
    "judge": Entry("nel.cli.judge:group", "Check judges before their scores are trusted."),
    "sandbox": Entry("nel.cli.sandbox:group", "Look at sandboxes, and clean up after runs that were killed."),
    "config": Entry("nel.cli.config:group", "Check and print configs; set the user's defaults."),
    "doctor": Entry("nel.cli.doctor:doctor", "Tell what is installed, reachable and missing."),
}


@dataclass(slots=True)
class Session:
    """What one call of `nel` was asked."""

    arguments: list[str]
    verbose: bool


def _print_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        from nel import __version__

        click.echo(f"nel {__version__}")
        ctx.exit()


root = LazyGroup(
    name="nel",
    entries=COMMANDS,
    help="Evaluate language models, agents and world models, and trust the number.",
)
root.context_settings["max_content_width"] = 100
root.params.append(
    click.Option(
        ["--version"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_print_version,
        help="Show the version and exit.",
    )
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code. `docs/cli.md` has the table."""
    session = Session(arguments=list(sys.argv[1:] if argv is None else argv), verbose=_debug_wanted())
    try:
        code = root.main(args=session.arguments, prog_name="nel", standalone_mode=False, obj=session)
        sys.stdout.flush()
        return int(code or ExitCode.OK)
    except (click.Abort, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        return _reader_gone()
    except SystemExit as ending:  # click's own: 1 when the reader of a pipe went away, 0 after a shell completion
        return _reader_gone() if ending.code == 1 else ExitCode.OK
    except click.ClickException as error:
        return _usage_error(error)
    except Exception as error:  # the last resort: every command's failure ends here
        return _explain(error, verbose=session.verbose)


def _debug_wanted() -> bool:
    return os.environ.get("NEL_DEBUG", "") not in ("", "0")


def _usage_error(error: click.ClickException) -> int:
    ctx = getattr(error, "ctx", None)
    _complain(error.format_message())
    if ctx is not None:
        click.echo(f"{ctx.get_usage()}\nSee '{ctx.command_path} --help'.", err=True)
    return ExitCode.USAGE


def _explain(error: Exception, *, verbose: bool) -> int:
    from nel.core.secrets import redact_text

    cause = _only_cause(error)
    if verbose:
        import traceback

        click.echo(redact_text("".join(traceback.format_exception(error))), err=True, nl=False)
    if isinstance(cause, NelError):
        _complain(redact_text(cause.message), redact_text(cause.hint) if cause.hint else None)
        return int(cause.exit_code)
    text = redact_text(str(cause))
    _complain(
        f"internal error: {type(cause).__name__}{f': {text}' if text else ''}",
        None if verbose else "This is a defect of nel. Set NEL_DEBUG=1 or give --verbose to see the traceback.",
    )
    return ExitCode.INTERNAL


def _only_cause(error: BaseException) -> BaseException:
    """The one error inside the group that an asyncio task group raises."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _complain(message: str, hint: str | None = None) -> None:
    with contextlib.suppress(BrokenPipeError):
        click.echo(f"error: {message}", err=True)
        if hint:
            click.echo(hint, err=True)


def _reader_gone() -> int:
    # What is still buffered must go somewhere, or the interpreter complains when it ends.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return _READER_GONE
