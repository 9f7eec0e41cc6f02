"""`hf://owner/name`: a data set of the Hugging Face hub, pinned to the commit it was read at.

Only the files of one split are downloaded, into the hub's own cache; a broken connection goes on where it stopped, and
files that are there are not fetched again. With HF_HUB_OFFLINE=1 nothing but that cache is used.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import parse_qsl

from nel.core.errors import DataError, NelError
from nel.environments.data.source import JoinedSource, Labelled

_REPO = re.compile(r"[\w.-]+(?:/[\w.-]+)?")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHARD = re.compile(r"-(\d{5})-of-(\d{5})$")
DATA_SUFFIXES = (
    ".parquet",
    ".jsonl",
    ".ndjson",
    ".json",
    ".csv",
    ".tsv",
    ".jsonl.gz",
    ".csv.gz",
    ".tsv.gz",
    ".json.gz",
)


@dataclass(frozen=True, slots=True)
class HubAddress:
    """One split of one configuration of a data set at one revision."""

    repo: str
    split: str = "test"
    config: str | None = None
    revision: str | None = None

    @classmethod
    def parse(cls, spec: str) -> HubAddress:
        """The address that `hf://owner/name?split=&config=&revision=` or a bare `owner/name` is."""
        repo, _, query = spec.removeprefix("hf://").partition("?")
        repo = repo.removeprefix("datasets/").strip("/")
        if not _REPO.fullmatch(repo):
            raise DataError(f"{spec}: not a data set of the hub", hint="Write hf://owner/name?split=test")
        fields: dict[str, str] = {}
        for key, value in parse_qsl(query, keep_blank_values=True):
            if key not in {"split", "config", "revision"}:
                near = get_close_matches(key, ["split", "config", "revision"], n=1)
                raise DataError(
                    f"{spec}: unknown option {key!r}",
                    hint=f"Did you mean {near[0]!r}?" if near else "The options are split, config and revision.",
                )
            fields[key] = value
        return cls(repo, **fields)

    def with_options(self, options: Mapping[str, str]) -> HubAddress:
        """The same data set with another split, configuration or revision."""
        return replace(self, **options)

    def __str__(self) -> str:
        options = {"config": self.config, "split": self.split, "revision": self.revision}
        return f"hf://{self.repo}?" + "&".join(f"{key}={value}" for key, value in options.items() if value)


class EachConfig(JoinedSource):
    """Several configurations of one data set (`config=de,fr`), one after the other; the column `config` says which."""

    def __init__(self, address: HubAddress) -> None:
        assert address.config is not None
        self.configs = address.config.split(",")
        sources = [HubSource(replace(address, config=name)) for name in self.configs]
        super().__init__(
            [Labelled(source, "config", name) for source, name in zip(sources, self.configs, strict=True)], str(address)
        )
        self._parts = sources

    def identity(self) -> dict[str, Any]:
        """Digest and rows of all, with the commit and the licence."""
        first = self._parts[0].identity()
        return super().identity() | {key: first[key] for key in ("revision", "license") if key in first}


class HubSource(JoinedSource):
    """The files of one split, downloaded when it is prepared."""

    def __init__(self, address: HubAddress, name: str | None = None) -> None:
        super().__init__([], name or str(address))
        self._address = address
        self._commit = ""
        self._license: str | None = None

    def prepare(self) -> None:
        """Download (or find in the cache) the files of the split and read them."""
        from nel.environments.data.opening import open_file

        with _explained(self._address):
            repo = _cached_repo(self._address) if _offline() else _online_repo(self._address)
            card = repo.card()
            files = choose_files(repo.files, self._address, card)
            paths = [repo.fetch(file) for file in files]
        self._commit = repo.commit
        said = card.get("license")
        self._license = ", ".join(said) if isinstance(said, list) else said
        self._sources = [open_file(path, f"{self.name}, {file}") for path, file in zip(paths, files, strict=True)]
        super().prepare()

    def identity(self) -> dict[str, Any]:
        """Digest and rows, with the commit and the licence that the data set's card names."""
        address = replace(self._address, revision=None)
        found = super().identity() | {"source": str(address), "revision": self._commit}
        return found | {"license": self._license} if self._license else found


@dataclass(frozen=True, slots=True)
class _Repo:
    """A data set at one commit: its files, and how to get one."""

    address: HubAddress
    commit: str
    files: Sequence[str]
    snapshot: Path | None = None
    """Where it is cached, when nothing else may be used."""

    def fetch(self, file: str) -> Path:
        if self.snapshot is not None:
            return self.snapshot / file
        from huggingface_hub import hf_hub_download

        # By revision, so that the cache learns which commit it stands for; it is checked to be the same one.
        path = hf_hub_download(
            self.address.repo, file, repo_type="dataset", revision=self.address.revision or "main", endpoint=_endpoint()
        )
        if self.commit not in Path(path).parts:
            raise DataError(
                f"{self.address}: the data set changed while it was downloaded, or its newest version could not be "
                "downloaded (is HF_TOKEN still good?)",
                hint=f"Run again, or pin it: revision={self.commit}",
            )
        return Path(path)

    def card(self) -> dict[str, Any]:
        """The fields at the top of the data set's card."""
        if "README.md" not in self.files:
            return {}
        from huggingface_hub import metadata_load

        return metadata_load(self.fetch("README.md")) or {}


def _endpoint() -> str | None:
    return os.environ.get("HF_ENDPOINT") or None


def _offline() -> bool:
    from huggingface_hub import constants

    return constants.is_offline_mode()


def _online_repo(address: HubAddress) -> _Repo:
    from huggingface_hub import HfApi

    info = HfApi(endpoint=_endpoint()).dataset_info(address.repo, revision=address.revision)
    return _Repo(address, str(info.sha), [sibling.rfilename for sibling in info.siblings or []])


def _cached_repo(address: HubAddress) -> _Repo:
    from huggingface_hub import constants
    from huggingface_hub.file_download import repo_folder_name

    root = Path(constants.HF_HUB_CACHE, repo_folder_name(repo_id=address.repo, repo_type="dataset"))
    revision = address.revision or "main"
    reference = root / "refs" / revision
    commit = revision if _COMMIT.fullmatch(revision) else reference.read_text().strip() if reference.is_file() else ""
    snapshot = root / "snapshots" / commit
    if not commit or not snapshot.is_dir():
        raise DataError(
            f"{address}: not in the cache ({constants.HF_HUB_CACHE}), and HF_HUB_OFFLINE forbids to download it",
            hint="Run once with a network, or give a file instead: `dataset: path/to/file.jsonl`.",
        )
    files = sorted(path.relative_to(snapshot).as_posix() for path in snapshot.rglob("*") if path.is_file())
    return _Repo(address, commit, files, snapshot)


def choose_files(files: Iterable[str], address: HubAddress, card: Mapping[str, Any]) -> list[str]:
    """The data files of the address's split, in order.

    The card's `configs` decide where it has them; else the hub's conventions: `config/split-*.parquet`,
    `data/split-*`, `split.csv`, `config/split/*`. `DataError` names the configurations or splits there are.
    """
    data = sorted(file for file in files if file.endswith(DATA_SUFFIXES))
    if not data:
        raise DataError(
            f"{address}: no Parquet, JSON or CSV files; a data set made by a script cannot be read",
            hint="The hub may have converted it: revision=refs/convert/parquet",
        )
    if card.get("configs"):
        return _complete(_by_card(data, address, card["configs"]), address)
    return _complete(_by_convention(data, address), address)


def _by_card(files: list[str], address: HubAddress, configs: Sequence[Mapping[str, Any]]) -> list[str]:
    by_name = {str(entry.get("config_name", "default")): entry for entry in configs}
    names = list(by_name)
    preferred = next((name for name, entry in by_name.items() if entry.get("default")), None)
    name = address.config or preferred or ("default" if "default" in by_name else names[0] if len(names) == 1 else "")
    if name not in by_name:
        raise _unknown("configuration", name, names, address)
    entry = by_name[name].get("data_files", [])
    if isinstance(entry, str) or (entry and isinstance(entry[0], str)):
        entry = [{"split": "train", "path": entry}]
    splits = {str(item["split"]): item["path"] for item in entry}
    if not splits:
        inside = [file for file in files if file.startswith(f"{by_name[name].get('data_dir', name)}/")]
        return _of_split(inside, address)
    if address.split not in splits:
        raise _unknown("split", address.split, list(splits), address)
    wanted = splits[address.split]
    patterns = [wanted] if isinstance(wanted, str) else list(wanted)
    return [file for file in files if any(fnmatch(file, pattern) for pattern in patterns)]


def _by_convention(files: list[str], address: HubAddress) -> list[str]:
    folders = sorted({PurePosixPath(file).parts[0] for file in files if "/" in file} - {"data"})
    if address.config is not None:
        inside = [file for file in files if address.config in PurePosixPath(file).parts[:-1]]
        if not inside:
            raise _unknown("configuration", address.config, folders, address)
        return _of_split(inside, address)
    plain = [file for file in files if "/" not in file or file.startswith("data/")]
    if not plain and len(folders) > 1 and address.split not in folders:
        raise _unknown("configuration", "", folders, address)
    return _of_split(plain or files, address)


def _of_split(files: list[str], address: HubAddress) -> list[str]:
    found = [file for file in files if address.split in _split_names(file)]
    if not found:
        known = sorted({_split_names(file)[-1] for file in files})
        raise _unknown("split", address.split, known, address)
    return found


def _split_names(file: str) -> tuple[str, str]:
    """What may be a file's split: its folder, and its own name without numbers and suffixes."""
    path = PurePosixPath(file)
    stem = path.name.partition(".")[0]
    return path.parent.name, re.split(r"-\d{5}", stem)[0]


def _complete(files: list[str], address: HubAddress) -> list[str]:
    for file in files:
        shard = _SHARD.search(PurePosixPath(file).name.partition(".")[0])
        if shard and sum(1 for other in files if f"-of-{shard[2]}" in other) < int(shard[2]):
            raise DataError(
                f"{address}: only {len(files)} of the split's {int(shard[2])} files are in the cache",
                hint="Run once with a network; only what is missing is downloaded.",
            )
    if not files:
        raise DataError(f"{address}: the data set's card names files that do not exist")
    return files


def _unknown(what: str, name: str, known: Sequence[str], address: HubAddress) -> DataError:
    near = get_close_matches(name, known, n=1)
    said = f"no {what} {name!r}" if name else f"several {what}s, and none is chosen"
    listed = f"It has: {', '.join(known) or 'none'}."
    return DataError(f"{address}: {said}", hint=f"Did you mean {near[0]!r}? {listed}" if near else listed)


@contextmanager
def _explained(address: HubAddress) -> Iterator[None]:
    """Turns what the hub's client raises into messages with a next step."""
    try:
        yield
    except NelError:
        raise
    except Exception as error:
        raise _translated(error, address) from error


def _translated(error: Exception, address: HubAddress) -> DataError:
    from huggingface_hub import errors

    if isinstance(error, errors.GatedRepoError):
        return DataError(
            f"{address}: the data set is gated",
            hint=f"Accept its terms at https://huggingface.co/datasets/{address.repo} and set HF_TOKEN to your token.",
        )
    if isinstance(error, errors.RepositoryNotFoundError):
        return DataError(
            f"{address}: no such data set, or it is private",
            hint="Check the name; for a private data set set HF_TOKEN.",
        )
    if isinstance(error, errors.RevisionNotFoundError):
        return DataError(f"{address}: no revision {address.revision!r}")
    return DataError(
        f"{address}: the hub could not be asked: {type(error).__name__}: {str(error).strip().splitlines()[0]}",
        hint="Without a network: HF_HUB_OFFLINE=1 uses the cache alone, `dataset: path/to/file.jsonl` a file.",
    )
