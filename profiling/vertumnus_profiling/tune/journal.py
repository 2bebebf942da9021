"""Trials on disk as they come, so that a search that was interrupted goes on where it was."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType

import msgspec
from msgspec import Struct

from vertumnus.domain.errors import ConfigError
from vertumnus.records.atomic import write_whole


class SearchSettings(Struct, frozen=True, kw_only=True):
    """What makes two searches the same: the same settings give the same trials."""

    config: str
    """Digest of the untuned config, seed and window aside where the slices set them."""
    parameters: tuple[str, ...]
    objective: str
    train: tuple[str, ...]
    trials: int
    draw: int
    versions: dict[str, str]


class Tried(Struct, frozen=True):
    """One trial on one training slice."""

    trial: int
    part: int
    """The slice, by number."""
    cost: float | None
    """None where it is infinite or undefined, which JSON cannot say."""
    values: dict[str, float]


class Journal:
    """The trials of one search, a JSON line each, the settings first."""

    def __init__(self, path: Path, settings: SearchSettings, anew: bool = False) -> None:
        """Open the journal in *path*, or begin it; with *anew* that of another search is replaced.

        Raises ConfigError when the file is another search's, or cannot be read or written.
        """
        self.path = path
        try:
            entries = list(_entries(path, settings, anew))
            path.parent.mkdir(parents=True, exist_ok=True)
            # written anew, so that a last line that a kill has cut is gone
            write_whole(path, lambda file: file.writelines(_lines([settings, *entries])))
            self._file = path.open("ab")
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror}") from error
        self.costs = {(entry.trial, entry.part): _cost(entry) for entry in entries}
        """By trial and slice."""

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, entry: Tried) -> None:
        """Keep *entry*; the system has it when this returns."""
        self.costs[entry.trial, entry.part] = _cost(entry)
        self._file.writelines(_lines([entry]))
        self._file.flush()


def _entries(path: Path, settings: SearchSettings, anew: bool) -> Iterator[Tried]:
    lines = path.read_bytes().splitlines() if path.exists() else []
    if not lines:
        return
    problem = _other_search(path, lines[0], settings)
    if problem and not anew:
        raise ConfigError(problem)
    for line in [] if problem else lines[1:]:
        try:
            yield msgspec.json.decode(line, type=Tried)
        except msgspec.DecodeError:
            return  # cut by a kill


def _other_search(path: Path, line: bytes, settings: SearchSettings) -> str | None:
    """Return how the search that *line* begins differs from *settings*; None when it is the same."""
    try:
        found = msgspec.json.decode(line, type=SearchSettings)
    except msgspec.DecodeError:
        return f"{path}: holds no trials of this version; delete it, or give another --out"
    for name in SearchSettings.__struct_fields__:
        kept, wanted = getattr(found, name), getattr(settings, name)
        if kept != wanted:
            return (
                f"{path}: holds trials of another search ({name}: {kept}, now {wanted}); "
                "delete it, give another --out, or replace it with --force"
            )
    return None


def _cost(entry: Tried) -> float:
    return float("inf") if entry.cost is None else entry.cost


def _lines(items: Iterable[Struct]) -> list[bytes]:
    return [msgspec.json.encode(item) + b"\n" for item in items]
