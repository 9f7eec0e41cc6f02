"""A stand-in for model servers: tells what it was started with, and serves a health path over real HTTP.

`install(folder)` lays out `vllm`, `sglang` and `trtllm-serve` there. What it does is said by environment variables:
STANDIN_RECORD (file that takes argv, environment and process ids as JSON), STANDIN_SAY (printed first), STANDIN_EXIT (ends at
once with this code, or by this signal when negative), STANDIN_STATUS (of the health path), STANDIN_DEAF (ignores
SIGTERM), STANDIN_CHILDREN (starts a deaf worker, and a daemon in a session of its own).
"""

import json
import os
import signal
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

MODULES = ("vllm/entrypoints/openai/api_server.py", "sglang/launch_server.py")
DEAF = (
    "import os, signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(os.getpid(), flush=True); signal.pause()"
)
DAEMON = f"import os\nif os.fork(): os._exit(0)\nos.setsid()\n{DEAF}"


def install(folder):
    """The environment that makes `python -m vllm...`, `python -m sglang...` and `trtllm-serve` run this file."""
    run = f"import runpy; runpy.run_path({__file__!r}, run_name='__main__')\n"
    for module in MODULES:
        file = folder / module
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(run)
        for parent in file.relative_to(folder).parents[:-1]:
            (folder / parent / "__init__.py").touch()
    program = folder / "trtllm-serve"
    program.write_text(f"#!{sys.executable}\n{run}")
    program.chmod(0o755)
    return {
        "PYTHONPATH": str(folder),
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "STANDIN_RECORD": str(folder / "record.json"),
    }


def read_record(folder):
    return json.loads((folder / "record.json").read_text())


def serve(argv):
    pids = {"server": os.getpid()}
    if os.environ.get("STANDIN_CHILDREN"):
        worker = subprocess.Popen([sys.executable, "-c", DEAF], stdout=subprocess.PIPE, text=True)
        worker.stdout.readline()
        daemon = subprocess.Popen([sys.executable, "-c", DAEMON], stdout=subprocess.PIPE, text=True)
        pids |= {"worker": worker.pid, "daemon": int(daemon.stdout.readline())}
        daemon.wait()
    if os.environ.get("STANDIN_DEAF"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Path(os.environ["STANDIN_RECORD"]).write_text(json.dumps({"argv": argv, "env": dict(os.environ), "pids": pids}))
    print(os.environ.get("STANDIN_SAY", "starting"), flush=True)
    if (code := int(os.environ.get("STANDIN_EXIT", "0"))) != 0:
        if code < 0:
            os.kill(os.getpid(), -code)
        sys.exit(code)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            status = int(os.environ.get("STANDIN_STATUS", "200")) if self.path == "/health" else 404
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    HTTPServer(("127.0.0.1", int(argv[argv.index("--port") + 1])), Handler).serve_forever()


if __name__ == "__main__":
    serve(sys.argv)
