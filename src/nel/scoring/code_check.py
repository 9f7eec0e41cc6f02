"""`code_sandbox`: whether a program passes its tests, run where it can do no harm.

The tests run in the program's own process, so a program that ends the process, prints what a passing one prints, or
catches what the tests raise must not count as passing: the verdict is a line that carries a number which the program is
not given, written after the last test, and nothing else counts.
"""

from __future__ import annotations

import json
import re
import secrets
from textwrap import indent
from typing import Any

from nel.core.errors import AttemptError
from nel.sandbox.base import ExecResult, Limits, Sandbox, SandboxError, SandboxSpec
from nel.scoring.code import extract_code
from nel.scoring.sample import ScorerInput

CODE_SPEC = SandboxSpec(limits=Limits(memory=1 << 30, cpus=1.0, pids=128, disk=256 << 20), readonly_root=True)
"""What a check of a small program needs: no network, nothing that can be written but a work directory in memory."""
TIME_LIMIT = 30.0
"""Seconds for program and tests."""
_KEPT = 1 << 16
_MESSAGE = 2000

_CHECK = r"""
def check():
    import json, os, sys
    job = json.loads(sys.stdin.read())
    report = os.fdopen(os.dup(2), "w")
    def tell(stage, kind="", message=""):
        report.write("\n" + json.dumps([job["token"], stage, kind, message[:2000]]) + "\n")
        report.flush()
    space = {"__name__": "__main__"}
    for stage in ("program", "tests"):
        try:
            exec(compile(job[stage], "<" + stage + ">", "exec"), space)
        except MemoryError:
            return tell(stage, "MemoryError")
        except BaseException as error:
            import traceback  # costs more than all the rest of a program that passes
            return tell(stage, type(error).__name__, "".join(traceback.format_exception_only(error)))
    tell("passed")
check()
"""


async def code_sandbox(
    sample: ScorerInput,
    *,
    tests: str,
    entry_point: str | None = None,
    prefix: str = "",
    time_limit: float = TIME_LIMIT,
) -> dict[str, Any]:
    """Whether the program in a reply passes `tests`, which are run after it in the same process.

    `prefix` (imports, the given head of a function) comes before a program that does not define `entry_point` itself.
    A program that fails is scored 0 with the reason as `failure_category`: `syntax_error`, `runtime_error` (before the
    tests), `wrong_answer`, `code_timeout` or `out_of_memory`. Without a sandbox, or where the sandbox or the check
    itself fails, nothing is known of the program: `SandboxError`, an error and no score.
    """
    if not isinstance(sample.sandbox, Sandbox):
        raise SandboxError(
            "the program was not run: there is no sandbox",
            hint="Give the benchmark one in the config, such as `sandbox: {type: bwrap}`.",
            permanent=True,
        )
    found = extract_code(sample.response, entry_point)
    if found is None:
        return {"correct": False, "extracted": None, "failure_category": "no_answer", "method": "code_sandbox"}
    token = secrets.token_hex(16)
    job = {"token": token, "program": with_head(found.text, prefix, entry_point), "tests": tests}
    done = await sample.sandbox.exec(
        ["python3", "-I", "-c", _CHECK], time_limit=time_limit, stdin=json.dumps(job).encode(), keep=_KEPT
    )
    return {"extracted": found.text, "rule": found.rule, "method": "code_sandbox", **_verdict(done, token)}


def with_head(program: str, head: str, entry_point: str | None) -> str:
    """A program with what was given: the whole head before the rest of a function, and before a program that defines
    `entry_point` itself only what stands in the head before it (imports, helpers)."""
    if not head:
        return program
    if entry_point is not None and re.search(
        rf"(?m)^[ \t]*(?:(?:async[ \t]+)?def|class)[ \t]+{re.escape(entry_point)}\b", program
    ):
        before = re.split(rf"(?m)^(?:(?:async[ \t]+)?def|class)[ \t]+{re.escape(entry_point)}\b", head, maxsplit=1)[0]
        return f"{before}\n{program}"
    first = next((line for line in program.splitlines() if line.strip()), "")
    return head.rstrip("\n") + "\n" + (program if first[:1] in {" ", "\t"} else indent(program, "    "))


def _verdict(done: ExecResult, token: str) -> dict[str, Any]:
    if done.timed_out:
        return _failed("code_timeout", "its time was up")
    told = _told(done, token)
    if told is None:
        if done.out_of_memory:
            return _failed("out_of_memory", "its memory was full")
        if done.return_code == 127:
            raise SandboxError(f"the program was not run: {done.error_text.strip()[-_MESSAGE:]}")
        return _failed("runtime_error", f"the process ended with exit code {done.return_code} before the tests had")
    stage, kind, message = told
    if stage == "passed":
        return {"correct": True}
    if kind == "MemoryError" or done.out_of_memory:
        return _failed("out_of_memory", "its memory was full")
    if stage == "program":
        return _failed("syntax_error" if kind in _SYNTAX else "runtime_error", message)
    if kind in _SYNTAX:
        raise AttemptError(f"the benchmark's tests are no program: {message}", category="scorer_error", permanent=True)
    return _failed("wrong_answer", message)


_SYNTAX = frozenset({"SyntaxError", "IndentationError", "TabError"})


def _failed(category: str, message: str) -> dict[str, Any]:
    return {"correct": False, "failure_category": category, "message": message.strip()[:_MESSAGE]}


def _told(done: ExecResult, token: str) -> tuple[str, str, str] | None:
    """The check's own line; None where it wrote none."""
    for line in reversed(done.stderr.splitlines()):
        if token.encode() in line:
            try:
                _, stage, kind, message = json.loads(line)
            except ValueError:
                return None
            return stage, kind, message
    return None
