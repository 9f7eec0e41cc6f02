"""Who may read: requests whose Host is not ours are refused, and beyond this machine only those with the token."""

from __future__ import annotations

import hmac
import ipaddress
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


class Guard:
    """Checks every request before `app` sees it, and adds the headers that keep a page to itself.

    The Host header must be one of `hosts` (or, with a token, an address in digits): a page of another site that points
    its own name to this machine is refused. With `token`, each request must bring it: as `?token=`, which becomes a
    cookie, as that cookie, or as `Authorization: Bearer`.
    """

    def __init__(self, app: ASGIApp, *, hosts: frozenset[str] = LOOPBACK, token: str | None = None) -> None:
        self.app = app
        self.hosts = hosts
        self.token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI calls an application."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        await (refusal or self.app)(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self._known(_without_port(host)):
            return PlainTextResponse("This viewer does not answer to that name.\n", status_code=421)
        if self.token is None:
            return None
        given = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        if "token" in given:
            if not self._matches(given.pop("token")):
                return _forbidden()
            # One slash: two would send the browser to another host.
            here = f"/{scope['path'].lstrip('/')}"
            answer = RedirectResponse(f"{here}?{urlencode(given)}" if given else here, status_code=303)
            answer.set_cookie(_cookie_name(scope), self.token, httponly=True, samesite="lax", path="/")
            return answer
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        return None if self._matches(bearer) or self._matches(_cookie(headers, scope)) else _forbidden()

    def _known(self, host: str) -> bool:
        if host in self.hosts:
            return True
        if self.token is None:
            return False
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return False
        return True

    def _matches(self, given: str) -> bool:
        return self.token is not None and hmac.compare_digest(given.encode(), self.token.encode())


def _forbidden() -> Response:
    return PlainTextResponse("Open the address that `nel view` printed: it holds the token.\n", status_code=403)


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def _cookie_name(scope: Scope) -> str:
    # Cookies do not know ports: two viewers on one machine must not overwrite each other's.
    return f"nel_view_{(scope.get('server') or ('', 0))[1]}"


def _cookie(headers: Headers, scope: Scope) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(_cookie_name(scope))
    except CookieError:
        return ""
    return found.value if found else ""


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sending
