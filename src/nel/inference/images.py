"""Images as a request carries them: URLs as they are, files as data URIs."""

from __future__ import annotations

import asyncio
import base64
import mimetypes
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from nel.inference.failure import InferenceError

_SIGNATURES: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
)


async def image_urls(images: Sequence[str]) -> list[str]:
    """One URL or data URI for each image; a file is read in a thread.

    `InferenceError` (`seed_error`) names a file that cannot be read or is no image.
    """
    return [image if _is_url(image) else await asyncio.to_thread(_data_uri, image) for image in images]


def _is_url(image: str) -> bool:
    return image[:8].lower().startswith(("http://", "https://", "data:"))


def _data_uri(name: str) -> str:
    path = Path(name.removeprefix("file://"))
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        raise _unusable(f"image {name[:200]!r} cannot be read: {error}") from None
    kind = _media_type(data, path)
    if kind is None:
        raise _unusable(f"image {name[:200]!r} is no image of a known kind")
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def _media_type(data: bytes, path: Path) -> str | None:
    """By the file's first bytes, since names lie; by its name where the bytes say nothing."""
    for signature, kind in _SIGNATURES:
        if data.startswith(signature):
            return kind
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    guess = mimetypes.guess_type(path.name)[0]
    return guess if guess is not None and guess.startswith("image/") else None


def _unusable(message: str) -> InferenceError:
    return InferenceError(message, category="seed_error")
