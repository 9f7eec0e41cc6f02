"""`Relay`: lets a sandbox's network reach one server outside, and no other."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Self

_CHUNK = 1 << 16


class Relay:
    """Listens at an address of the sandbox's network and passes bytes on to one server; use as a context manager."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        """Where it listens."""

    async def start(self, address: str, port: int = 0) -> Self:
        """Listens; `OSError` where it cannot."""
        self._server = await asyncio.start_server(self._serve, address, port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def close(self) -> None:
        """Stops listening and ends what is open."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            there_reader, there_writer = await asyncio.open_connection(self._host, self._port)
        except OSError:
            writer.close()
            self._tasks.discard(task)
            return
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_copy(reader, there_writer))
                group.create_task(_copy(there_reader, writer))
        finally:
            for end in (writer, there_writer):
                end.close()
                with contextlib.suppress(OSError):
                    await end.wait_closed()
            self._tasks.discard(task)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.write_eof()
