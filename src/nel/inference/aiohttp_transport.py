"""`AiohttpTransport`: HTTP over kept-alive connections."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

from nel.inference.transport import Reply, TransportError

_CONNECT_SECONDS: Final = 30
_IN_ONE_WRITE: Final = 1 << 20
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class AiohttpTransport:
    """A `Transport` with as many connections as there are requests: limits belong to the service.

    A proxy that the environment names (`HTTPS_PROXY`, `NO_PROXY`, ...) is used, but not for this machine. Redirects are
    not followed, cookies not kept. A reply larger than `max_reply_bytes` (after decompression) is a `TransportError`.
    """

    def __init__(self, *, max_reply_bytes: int) -> None:
        self._max = max_reply_bytes
        self._session: aiohttp.ClientSession | None = None
        self._targets: dict[str, tuple[URL, str | None]] = {}

    async def send(
        self,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        on_chunk: Callable[[bytes], bool] | None = None,
    ) -> Reply:
        """See `Transport.send`."""
        session = self._session or self._open()
        try:
            target, proxy = self._targets.get(url) or self._target(url)
            response = await session.request(
                "GET" if body is None else "POST",
                target,
                # A large body in one write would block the loop.
                data=io.BytesIO(body) if body is not None and len(body) > _IN_ONE_WRITE else body,
                headers=headers,
                allow_redirects=False,
                proxy=proxy,
            )
            try:
                return await self._read(response, on_chunk)
            except BaseException:
                response.close()
                raise
        except (aiohttp.ClientResponseError, aiohttp.InvalidURL, ValueError) as error:
            raise TransportError(_describe(error), unreachable=False) from None
        except (aiohttp.ClientError, OSError) as error:
            raise TransportError(_describe(error), unreachable=True) from None

    async def _read(self, response: aiohttp.ClientResponse, on_chunk: Callable[[bytes], bool] | None) -> Reply:
        length = response.content_length
        if on_chunk is not None and response.content_type == "text/event-stream":
            await self._stream(response, on_chunk)
            return Reply(response.status, response.headers, b"")
        if length is not None and length <= self._max and "Content-Encoding" not in response.headers:
            return Reply(response.status, response.headers, await response.read())
        if length is not None and length > self._max:
            raise self._too_large()
        parts: list[bytes] = []
        await self._pieces(response, parts.append)
        return Reply(response.status, response.headers, b"".join(parts))

    async def _stream(self, response: aiohttp.ClientResponse, on_chunk: Callable[[bytes], bool]) -> None:
        await self._pieces(response, on_chunk)
        # A server that does not end its stream after the last event loses the connection.
        if response.content.at_eof():
            response.release()
        else:
            response.close()

    async def _pieces(self, response: aiohttp.ClientResponse, take: Callable[[bytes], bool | None]) -> None:
        total = 0
        async for part in response.content.iter_any():
            total += len(part)
            if total > self._max:
                raise self._too_large()
            if take(part):
                return

    def _too_large(self) -> TransportError:
        return TransportError(f"the reply is larger than {self._max} bytes", unreachable=False, retry=False)

    def _open(self) -> aiohttp.ClientSession:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=60),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
        )
        return self._session

    def _target(self, url: str) -> tuple[URL, str | None]:
        """The URL as aiohttp wants it and its proxy, worked out once."""
        target = URL(url)
        proxy = getproxies().get(target.scheme)
        host = target.host or ""
        if proxy is not None and (host in _LOOPBACK or proxy_bypass(host)):
            proxy = None
        self._targets[url] = target, proxy
        return target, proxy

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None


def _describe(error: Any) -> str:
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
