"""Server-sent events: from the bytes of a stream to the reply that it says piece by piece."""

from __future__ import annotations

from nel.inference.clock import Clock
from nel.inference.failure import Failure
from nel.inference.protocols import StreamReader


class EventStream:
    """Feeds the data of each event to a protocol's reader and notes when the first token came.

    Follows the event stream format of the HTML standard: `data` lines of one event are joined, comments and other
    fields are passed over. `[DONE]` ends the stream.
    """

    def __init__(self, reader: StreamReader, clock: Clock) -> None:
        self._reader = reader
        self._clock = clock
        self._rest = b""
        self._data: list[bytes] = []
        self._done = False
        self.first_token_at: float | None = None
        """On the clock's monotonic scale."""

    def feed(self, chunk: bytes) -> bool:
        """Take the next bytes; True when the answer is complete."""
        if b"\n" not in chunk:
            self._rest += chunk
            return False
        lines = (self._rest + chunk).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            self._line(line.rstrip(b"\r"))
            if self._done:
                return True
        return False

    def _line(self, line: bytes) -> None:
        if line.startswith(b"data:"):
            self._data.append(line[6:] if line.startswith(b"data: ") else line[5:])
        elif not line and self._data:
            self._event()

    def _event(self) -> None:
        data = b"\n".join(self._data)
        self._data.clear()
        if data.strip() == b"[DONE]":
            self._done = True
            return
        self._done = self._reader.add(data)
        if self.first_token_at is None and self._reader.started:
            self.first_token_at = self._clock.monotonic()

    def reply(self) -> bytes | Failure:
        """The body of the whole reply, or why there is none."""
        if not self._done:
            self._line(self._rest)
            if self._data:
                self._event()
        return self._reader.reply(done=self._done)
