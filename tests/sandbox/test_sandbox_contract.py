"""What every backend promises to those who use a sandbox without knowing which it is."""

from __future__ import annotations

import asyncio
import os
import subprocess

import pytest
from sandboxes import IMAGE, LIMITS, mine, on, on_isolated

from nel.sandbox.backends import get_backend
from nel.sandbox.base import SandboxError, SandboxSpec

SECRET = "sk-0123456789abcdef-in-no-process-list"


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 120))


def inside(opened, *commands, **more):
    """How commands end, one after the other in one sandbox."""

    async def act():
        async with opened(**more) as sandbox:
            return [await sandbox.exec(command) for command in commands]

    return run(act())


@on
def test_a_command_gives_its_streams_and_its_exit_code(opened):
    (found,) = inside(opened, "echo out; echo err >&2; exit 3")
    assert (found.stdout, found.stderr, found.return_code) == (b"out\n", b"err\n", 3)
    assert (found.ok, found.timed_out, found.truncated, found.out_of_memory) == (False, False, False, False)


@on
@pytest.mark.parametrize(
    ("command", "code"), [("nosuchcommand", 127), ("exit 125", 125), ("exit 1", 1), ("kill -9 $$", 137)]
)
def test_an_exit_code_is_the_commands_own(opened, command, code):
    (found,) = inside(opened, command)
    assert found.return_code == code
    assert not found.out_of_memory


@on
def test_a_list_is_run_as_it_is_and_a_text_by_a_shell(opened):
    exact, shell = inside(
        opened, ["printf", "%s|", "a b", "$HOME", ";"], "printf '%s|' a b; cat <<'E' # a remark\nx;y\nE\n"
    )
    assert exact.stdout == b"a b|$HOME|;|"
    assert shell.stdout == b"a|b|x;y\n"


@on
def test_files_of_one_command_are_there_for_the_next(opened):
    *_, found = inside(opened, "mkdir -p d && echo 1 > d/f", "cat d/f")
    assert found.stdout == b"1\n"


@on
def test_bytes_that_are_no_text_pass_both_ways(opened):
    async def act():
        async with opened() as sandbox:
            return await sandbox.exec("cat", stdin=bytes(range(256)))

    assert run(act()).stdout == bytes(range(256))


@on
def test_output_is_bounded(opened):
    async def act():
        async with opened() as sandbox:
            return await sandbox.exec("head -c 5000000 /dev/zero | tr '\\0' x; echo; echo end", keep=1000)

    found = run(act())
    assert found.truncated
    assert len(found.stdout) < 1100
    assert found.stdout.endswith(b"x\nend\n")


@on
def test_when_the_time_is_up_the_tree_is_ended_and_what_it_said_is_kept(opened):
    async def act():
        async with opened() as sandbox:
            found = await sandbox.exec("echo begun; sleep 73.25 & sleep 73.25", time_limit=1)
            left = await sandbox.exec("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '")
            again = await sandbox.exec("echo still here")
            return found, left, again

    found, left, again = run(act())
    assert (found.timed_out, found.return_code, found.stdout) == (True, 124, b"begun\n")
    assert b"sleep 73.25" not in left.stdout
    assert again.stdout == b"still here\n"


@on
def test_the_environment_of_spec_and_command_is_there_and_the_callers_is_not(opened, monkeypatch):
    monkeypatch.setenv("NEL_TEST_OF_THE_HOST", "seen")

    async def act():
        async with opened(env={"A": "1", "B": "1"}) as sandbox:
            return await sandbox.exec('echo "$A $B $C $NEL_TEST_OF_THE_HOST"', env={"B": "2", "C": "x y'\"$"})

    assert run(act()).stdout == b"1 2 x y'\"$ \n"


@on
def test_values_of_the_environment_stand_in_no_process_list(opened):
    async def act():
        async with opened(env={"FIRST": SECRET}) as sandbox:
            task = asyncio.create_task(sandbox.exec("echo $SECOND; sleep 3", env={"SECOND": SECRET}))
            seen = []
            while not task.done():
                ps = await asyncio.create_subprocess_exec("ps", "axww", "-o", "args", stdout=subprocess.PIPE)
                seen.append((await ps.communicate())[0])
            return (await task).stdout, seen

    said, seen = run(act())
    assert said == SECRET.encode() + b"\n"
    assert seen
    assert not any(SECRET.encode() in listing for listing in seen)


@on
def test_a_tree_goes_in_and_comes_out_as_it_was(opened, tmp_path):
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    (source / "sub" / "a file").write_bytes(b"\0\xff")
    (source / "run").write_text("#!/bin/sh\necho ran\n")
    (source / "run").chmod(0o755)

    async def act():
        async with opened() as sandbox:
            await sandbox.upload(source, "deep/copy")
            await sandbox.upload(source / "run", "script")
            found = await sandbox.exec("deep/copy/run && ./script && echo new > deep/copy/sub/new")
            await sandbox.download("deep/copy", tmp_path / "back")
            await sandbox.download("deep/copy/sub/new", tmp_path / "new.txt")
            return found

    assert run(act()).stdout == b"ran\nran\n"
    assert (tmp_path / "back/sub/a file").read_bytes() == b"\0\xff"
    assert os.access(tmp_path / "back/run", os.X_OK)
    assert (tmp_path / "new.txt").read_text() == "new\n"


@on
def test_what_is_not_there_is_an_error_that_names_it(opened, tmp_path):
    async def act():
        async with opened() as sandbox:
            with pytest.raises(SandboxError, match="absent"):
                await sandbox.download("absent", tmp_path / "x")
            with pytest.raises(SandboxError, match="no such file"):
                await sandbox.upload(tmp_path / "absent", "x")

    run(act())
    assert not (tmp_path / "x").exists()


@on
def test_more_than_was_allowed_does_not_come_out(opened, tmp_path):
    async def act():
        async with opened() as sandbox:
            await sandbox.exec("head -c 100000 /dev/zero > big")
            with pytest.raises(SandboxError, match="more than 1,000 bytes"):
                await sandbox.download("big", tmp_path / "x", max_bytes=1000)

    run(act())
    assert not (tmp_path / "x").exists()


@on
def test_files_of_the_spec_are_there_from_the_start(opened, tmp_path):
    (tmp_path / "f").write_text("given")
    (found,) = inside(opened, "cat sub/f", files={str(tmp_path / "f"): "sub/f"})
    assert found.stdout == b"given"


@on
def test_commands_may_run_side_by_side(opened):
    async def act():
        async with opened() as sandbox:
            found = await asyncio.gather(*(sandbox.exec(f"echo {number}") for number in range(8)))
            return [result.stdout for result in found]

    assert run(act()) == [b"%d\n" % number for number in range(8)]


@on
def test_a_cancelled_command_leaves_a_sandbox_that_works(opened):
    async def act():
        async with opened() as sandbox:
            task = asyncio.create_task(sandbox.exec("touch started; sleep 60"))
            while not (await sandbox.exec("test -e started")).ok:
                pass
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return await sandbox.exec("echo works")

    assert run(act()).stdout == b"works\n"


@on
def test_a_stopped_sandbox_runs_nothing_and_may_be_stopped_again(opened):
    async def act():
        async with opened() as sandbox:
            assert await sandbox.is_running()
            await sandbox.stop()
            assert not await sandbox.is_running()
            with pytest.raises(SandboxError, match="not running"):
                await sandbox.exec("true")
            await sandbox.stop()

    run(act())


@on
def test_nothing_of_a_sandbox_is_left_on_the_machine(opened, backend):
    async def act():
        async with opened() as sandbox:
            await sandbox.exec("setsid sleep 600 >/dev/null 2>&1 & echo x > file")
            during = mine(await get_backend(backend).leftovers())
        return during, mine(await get_backend(backend).leftovers())

    during, after = run(act())
    assert bool(during) == (backend != "local")
    assert after == []


@pytest.mark.parametrize("pause", [0, 0.01, 0.05, 0.2])
@on_isolated
def test_a_cancelled_start_leaves_nothing(backend, pause):
    async def act():
        made = get_backend(backend)
        image = IMAGE if backend in {"docker", "podman"} else None
        sandbox = made.sandbox(SandboxSpec(image=image, limits=LIMITS))
        task = asyncio.create_task(sandbox.start())
        done, _ = await asyncio.wait([task], timeout=pause)
        if done:  # a quick one is stopped instead
            await sandbox.stop()
        else:
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        return mine(await made.leftovers())

    assert run(act()) == []
