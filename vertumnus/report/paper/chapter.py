"""What a chapter of the report is made of: statements beside ours, tables, pictures, explanations."""

from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from math import inf
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from vertumnus.report.compare.intervals import Difference, paired_difference
from vertumnus.report.compare.members import Member, Members
from vertumnus.report.paper.panels import Picture
from vertumnus.report.store import query

Unit: TypeAlias = Literal["x", "s", "tokens", "requests", "share", "change", "points"]
"""A share is 0..1; a change is relative to another value, as a share; points are a difference of shares."""


class Claim(NamedTuple):
    """One value that the paper states, and ours."""

    what: str
    unit: Unit
    paper: tuple[float, float]
    """The range it states; both ends the same for one value, an infinite end where it is open."""
    ours: Difference | None
    """Mean over seeds with its 95 % interval; None where no run tells."""
    execution: str = "simulated"

    @property
    def lies(self) -> float:
        """How far ours is from the nearest end of what is stated, 0 within; needs `ours`."""
        assert self.ours is not None
        low, high = self.paper
        return self.ours.mean - min(max(self.ours.mean, low), high)


class Grid(NamedTuple):
    """A table: text in the first column, numbers as text in the others."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


class Chapter(NamedTuple):
    """One table or figure of the paper, as our runs have it."""

    says: str
    """What the paper shows there, in a sentence or two."""
    claims: Sequence[Claim]
    grids: Sequence[Grid]
    pictures: Sequence[Picture]
    causes: Sequence[str]
    """Why ours differs, as far as it is known."""


class Runs:
    """The runs that a chapter is made of, by the experiment that made them."""

    def __init__(self, runs_dir: Path, members: Mapping[str, Members]) -> None:
        self.runs_dir = runs_dir
        self.members = members

    def of(self, *experiments: str) -> list[Member]:
        """Return the VALID runs of *experiments*; of those not asked for there are none."""
        return [run for name in experiments if name in self.members for run in self.members[name].runs]

    def answer(
        self, statement: str, runs: Iterable[Member], parameters: Mapping[str, object] | None = None
    ) -> list[dict[str, Any]]:
        """Return the rows of the paper's *statement*.sql over *runs*, none without a run."""
        only = [run.run_id for run in runs]
        if not only:
            return []
        sql = files("vertumnus.report.paper").joinpath(f"{statement}.sql").read_text(encoding="utf-8")
        return query(self.runs_dir, sql, parameters, only=only).dicts()


def mean_of(values: Iterable[float | None]) -> Difference | None:
    """Return the mean of *values*, one a seed, with its interval; None where there is none."""
    known = [value for value in values if value is not None]
    return paired_difference(known, [0.0] * len(known))


def exactly(value: float) -> tuple[float, float]:
    """Return one stated value as a range."""
    return value, value


def at_most(value: float) -> tuple[float, float]:
    """Return a stated upper bound as a range."""
    return -inf, value


def by(rows: Iterable[Mapping[str, Any]], *keys: str) -> dict[Any, list[Mapping[str, Any]]]:
    """Return *rows* in groups of equal *keys*, in the order in which groups first occur."""
    found: dict[Any, list[Mapping[str, Any]]] = {}
    for row in rows:
        key = row[keys[0]] if len(keys) == 1 else tuple(row[each] for each in keys)
        found.setdefault(key, []).append(row)
    return found
