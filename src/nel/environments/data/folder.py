"""A folder as a data source: one row a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from nel.core.digest import digest_tree
from nel.core.errors import DataError
from nel.environments.data.source import DataSource, Row, hex_digest

IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp"})


class FolderSource(DataSource):
    """The files of a folder and its subfolders by name: `file` and `text`, or `file` and `image` (its path).

    Hidden files and folders do not count. The folder of a file (`""` at the top) is its `folder`, which serves well as
    category or expected answer.
    """

    def __init__(self, path: Path, name: str) -> None:
        super().__init__(name)
        self._path = path
        self._files: list[str] = []
        self._sha256 = ""

    def prepare(self) -> None:
        """List the files."""
        self._files = sorted(self._list())
        if not self._files:
            raise DataError(f"{self.name}: no files in this folder")
        self._sha256 = hex_digest(digest_tree(self._path))
        for idx, file in enumerate(self._files):
            kind = "image" if _is_image(file) else "text"
            self._note_shape(("file", "folder", kind), idx)

    def _list(self) -> list[str]:
        found = []
        for folder, folders, files in os.walk(self._path):
            folders[:] = [name for name in folders if not name.startswith(".")]
            place = Path(folder).relative_to(self._path)
            found += [(place / name).as_posix() for name in files if not name.startswith(".")]
        return found

    def __len__(self) -> int:
        return len(self._files)

    def row(self, idx: int) -> Row:
        """The file's name, its folder, and its text or path."""
        file = self._files[idx]
        path = self._path / file
        folder = Path(file).parent.as_posix()
        row: Row = {"file": file, "folder": "" if folder == "." else folder}
        if _is_image(file):
            return row | {"image": str(path.resolve())}
        try:
            return row | {"text": path.read_text(encoding="utf-8")}
        except UnicodeDecodeError:
            raise DataError(
                f"{self.place(idx)}: neither an image nor UTF-8 text",
                hint=f"Images end in {', '.join(sorted(IMAGE_SUFFIXES))}.",
            ) from None
        except OSError as error:
            raise DataError(f"{self.place(idx)}: {error.strerror}") from None

    def place(self, idx: int) -> str:
        """The file."""
        return f"{self.name}/{self._files[idx]}"

    def identity(self) -> dict[str, Any]:
        """The digest of the whole folder and its number of files."""
        return {"source": self.name, "sha256": self._sha256, "rows": len(self)}


def _is_image(file: str) -> bool:
    return Path(file).suffix.lower() in IMAGE_SUFFIXES
