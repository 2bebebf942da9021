"""A part of a sweep: ``--only policy=paper,static --only seed=1`` keeps the jobs that have these values.

Typing ``policy=paper`` would put that value in the place of an axis, in every block that is declared.
"""

from collections.abc import Mapping, Sequence

from vertumnus.config import did_you_mean
from vertumnus.domain.errors import ConfigError

Words = tuple[str, ...]


def narrowed(jobs: Sequence[Words], only: Sequence[str]) -> list[Words]:
    """Return the *jobs* that have, for each key of *only*, one of the values that it allows.

    Raises ConfigError when no job has a key or a value that is named, or none is left.
    """
    values = [_values(job) for job in jobs]
    problems = [problem for word in only for problem in _problems(word, values)]
    if problems:
        raise ConfigError(*problems)
    kept = [
        job
        for job, having in zip(jobs, values, strict=True)
        if all(having.get(_key(word)) in _allowed(word) for word in only)
    ]
    if not kept:
        raise ConfigError(f"--only {' --only '.join(only)}: no job has all of these")
    return kept


def _values(job: Words) -> Mapping[str, str]:
    return {key.lstrip("+"): value for key, _, value in (word.partition("=") for word in job)}


def _key(word: str) -> str:
    return word.partition("=")[0].lstrip("+")


def _allowed(word: str) -> list[str]:
    """Return what *word* allows: its value as a whole, since a mapping has commas too, or a part of it."""
    value = word.partition("=")[2]
    return [value, *value.split(",")]


def _problems(word: str, values: Sequence[Mapping[str, str]]) -> list[str]:
    key, there = _key(word), dict.fromkeys(value[_key(word)] for value in values if _key(word) in value)
    if not there:
        keys = dict.fromkeys(name for value in values for name in value)
        return [f"--only {word}: no job has {key}{did_you_mean(key, keys)}"]
    if word.partition("=")[2] in there:
        return []
    unknown = [value for value in _allowed(word)[1:] if value not in there]
    return [f"--only {key}={value}: no job has it; there are: {', '.join(there)}" for value in unknown]
