"""`python -m nel.orchestration.llama_server`: one GGUF model behind an OpenAI-compatible server on this machine."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from typing import Any

from nel.core.errors import NelError
from nel.core.loading import require
from nel.orchestration.model_files import find_model_file, model_cache, served_file


def parser() -> argparse.ArgumentParser:
    """The options of the program."""
    options = argparse.ArgumentParser(prog="python -m nel.orchestration.llama_server", description=__doc__)
    options.add_argument("--model", required=True, help="GGUF file: a path, or package://NAME/inner/path")
    options.add_argument("--alias", required=True, help="name that requests use")
    options.add_argument("--host", default="127.0.0.1")
    options.add_argument("--port", type=int, required=True)
    options.add_argument("--threads", type=int, default=1, help="processor threads")
    options.add_argument("--parallel", type=int, default=4, help="requests answered at once")
    options.add_argument("--context", type=int, default=8192, help="tokens of context, shared by the parallel slots")
    options.add_argument("--chat-template", help="Jinja template, or the file that holds it")
    options.add_argument("--keep-quantised", action="store_true", help="serve quantised weights as they are")
    return options


def chat_template(given: str) -> str:
    """The template's text: of the file that `given` names, else `given` itself."""
    try:
        path = Path(given).expanduser()
        return path.read_text(encoding="utf-8") if path.is_file() else given
    except (OSError, ValueError):  # a text that cannot be a path
        return given


def serve(given: argparse.Namespace) -> Any:
    """Starts the server in threads of its own and returns it; it answers until it is dropped."""
    xllamacpp = require("xllamacpp", what="llama_server", extra="local")
    model = find_model_file(given.model, "llama_server")
    if not given.keep_quantised:
        require("gguf", what="llama_server", extra="local")
        model = served_file(model, model_cache(), _say)
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(model)
    parameters.model_alias = {given.alias}
    parameters.hostnames = [given.host]
    parameters.port = given.port
    parameters.n_parallel = given.parallel
    parameters.n_ctx = given.context
    parameters.cpuparams.n_threads = given.threads
    parameters.cpuparams_batch.n_threads = given.threads
    parameters.cache_ram_mib = 0  # else up to 8 GB of old prompts are kept
    parameters.ui = False
    parameters.offline = True
    if given.chat_template is not None:
        parameters.chat_template = chat_template(given.chat_template)
    return xllamacpp.Server(parameters)


def main() -> None:
    """The program; it ends at once when told to, and leaves no half-converted file."""
    given = parser().parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        server = serve(given)
    except (NelError, OSError, RuntimeError) as error:
        sys.exit(f"llama_server: {error}")
    # The threads of the server do not end promptly; nothing that they hold outlives the process.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _say(f"{given.alias} at {server.listening_address}")
    while True:
        signal.pause()


def _say(text: str) -> None:
    print(f"llama_server: {text}", flush=True)  # noqa: T201 - the program's output is its log


if __name__ == "__main__":
    main()
