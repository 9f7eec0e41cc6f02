"""The web application of `nel view`: pages, and the JSON that their lists read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from nel.core.contract import encode_json
from nel.core.errors import NelError, RunDirError, UsageError
from nel.reporting.html.page import asset
from nel.reporting.viewer.compare import ComparePages
from nel.reporting.viewer.guard import LOOPBACK, Guard
from nel.reporting.viewer.library import Library
from nel.reporting.viewer.runs import RunPages, template

_ASSETS = {
    "style.css": ("text/css", ("style.css",)),
    "viewer.js": ("text/javascript", ("samples.js", "viewer.js")),
}
"""By name: the type, and the files that are put together."""


def make_app(library: Library, *, hosts: frozenset[str] = LOOPBACK, token: str | None = None) -> Starlette:
    """The application over `library`; see `Guard` for `hosts` and `token`."""
    runs = RunPages(library)
    compare = ComparePages(library, runs)
    routes = [
        Route("/", _page(runs.list_page)),
        Route("/run/{run}", _page(runs.run_page)),
        Route("/run/{run}/overview", _page(runs.overview_part)),
        Route("/compare/{first}/{second}", _page(compare.compare_page)),
        Route("/api/runs", _json(runs.runs)),
        Route("/api/run/{run}", _json(runs.state)),
        Route("/api/run/{run}/samples", _json(runs.samples)),
        Route("/api/run/{run}/sample", _json(runs.sample)),
        Route("/api/compare/{first}/{second}/samples", _json(compare.pair_samples)),
        Route("/api/compare/{first}/{second}/sample", _json(compare.pair_sample)),
        Route("/assets/{name}", _asset),
    ]
    return Starlette(routes=routes, middleware=[Middleware(Guard, hosts=hosts, token=token)])


Handler = Callable[[dict[str, str], dict[str, str]], Any]
"""From the names in the path and the parameters of the address to what is answered."""


def _json(handler: Handler) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        status = 200
        try:
            value = await run_in_threadpool(handler, request.path_params, dict(request.query_params))
        except NelError as error:
            status = _status(error)
            value = {"error": str(error)}
        return Response(encode_json(value), status, media_type="application/json")

    return answer


def _page(handler: Handler) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        try:
            return HTMLResponse(await run_in_threadpool(handler, request.path_params, dict(request.query_params)))
        except NelError as error:
            return HTMLResponse(template("error.html").render(error=error), _status(error))

    return answer


def _status(error: NelError) -> int:
    return 404 if isinstance(error, RunDirError) else 400 if isinstance(error, UsageError) else 500


async def _asset(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _ASSETS:
        return Response("There is no such file.\n", 404, media_type="text/plain")
    kind, parts = _ASSETS[name]
    return Response("".join(map(asset, parts)), media_type=kind)


def listen(library: Library, host: str, port: int, token: str | None) -> tuple[Callable[[], None], int]:
    """A bound server, as the function that runs it until it is interrupted, and the port that it got.

    `UsageError` where the address cannot be had.
    """
    import socket

    import uvicorn

    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        bound = socket.create_server((host, port), family=family)
    except OSError as error:
        raise UsageError(
            f"Cannot listen on {host}:{port}: {error.strerror or error}.", hint="--port 0 takes any that is free."
        ) from None
    hosts = LOOPBACK if token is None else LOOPBACK | {host.lower(), socket.gethostname().lower(), socket.getfqdn()}
    app = make_app(library, hosts=frozenset(hosts), token=token)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off"))
    return lambda: server.run(sockets=[bound]), int(bound.getsockname()[1])
