"""Slices of a workload to train and to judge on: seeds of its generator, or stretches of its time."""

import re
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

from vertumnus.config import RunConfig
from vertumnus.domain.errors import ConfigError

FORMS = "seed:1,2,3 or seed:1..3, or time:0..600,600..1200 [s of the trace]"
"""How slices are written."""


class Slice(NamedTuple):
    """One part of the workload: another seed, or a stretch of time."""

    seed: int | None
    start_s: float = 0.0
    end_s: float = inf

    def __str__(self) -> str:
        return f"time {self.start_s:g}..{self.end_s:g}" if self.seed is None else f"seed {self.seed}"

    def of(self, tree: Mapping[str, Any]) -> dict[str, Any]:
        """Return the plain tree of a config with this part of its workload."""
        if self.seed is not None:
            return {**tree, "seed": self.seed}
        window = {"start_s": self.start_s, "duration_s": self.end_s - self.start_s}
        return {**tree, "workload": {**tree["workload"], **window}}


def read_slices(text: str, flag: str) -> tuple[Slice, ...]:
    """Return the slices that *text*, the value of *flag*, names.

    Raises ConfigError with the forms that are allowed.
    """
    kind, colon, listed = text.partition(":")
    readers = {"seed": _seeds, "time": _times}
    if not colon or kind not in readers or not listed:
        raise ConfigError(f"{flag}: found {text!r}, must be {FORMS}")
    try:
        slices = [each for word in listed.split(",") for each in readers[kind](word)]
    except ValueError as error:
        raise ConfigError(f"{flag}: found {text!r}, {error}; must be {FORMS}") from error
    twice = sorted({str(each) for each in slices if slices.count(each) > 1})
    if twice:
        raise ConfigError(f"{flag}: found {text!r}, which names {', '.join(twice)} twice")
    return tuple(slices)


def require_apart(train: Sequence[Slice], judge: Sequence[Slice], config: RunConfig) -> None:
    """Raise ConfigError when a config would be judged on requests that it was trained on."""
    problems = [
        *_file_problems((*train, *judge), config),
        *(
            f"--judge: {judged} shares requests with --train {trained}; a tuned config is judged on others"
            for judged in judge
            for trained in train
            if _share(judged, trained, config)
        ),
    ]
    if problems:
        raise ConfigError(*problems)


def _file_problems(slices: Sequence[Slice], config: RunConfig) -> Iterator[str]:
    if config.workload.path is not None and any(each.seed is not None for each in slices):
        yield (
            f"--train, --judge: every seed replays the same requests of {config.workload.path} "
            "(workload.path); use time:START..END"
        )


def _share(one: Slice, other: Slice, config: RunConfig) -> bool:
    seeds = {config.seed if part.seed is None else part.seed for part in (one, other)}
    apart_in_time = one.end_s <= other.start_s or other.end_s <= one.start_s
    return len(seeds) == 1 and not apart_in_time


def _seeds(word: str) -> Iterator[Slice]:
    found = re.fullmatch(r"(\d{1,9})(?:\.\.(\d{1,9}))?", word)
    if found is None:
        raise ValueError(f"where {word!r} is no seed")
    first, last = int(found[1]), int(found[2] or found[1])
    if not first <= last < first + 1_000:
        raise ValueError(f"where {word!r} is no range of at most 1,000 seeds")
    yield from (Slice(seed) for seed in range(first, last + 1))


def _times(word: str) -> Iterator[Slice]:
    start, _, end = word.partition("..")
    try:
        part = Slice(None, float(start), float(end))
    except ValueError:
        raise ValueError(f"where {word!r} is no stretch of time") from None
    if not 0.0 <= part.start_s < part.end_s < inf:
        raise ValueError(f"where {word!r} does not end after it starts")
    yield part
