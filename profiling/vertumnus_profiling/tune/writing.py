"""The tuned config as a file that composes, with where its numbers come from as comments."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml
from msgspec import Struct

from vertumnus.records.atomic import write_whole
from vertumnus_profiling.tune.judge import Judgement
from vertumnus_profiling.tune.objectives import Objective


class Origin(NamedTuple):
    """What a tuned config is for, and how it came about."""

    command: Sequence[str]
    date: str
    versions: str
    workload: str
    hardware: str
    """Model, hardware and scan interval that it was tuned for."""
    search: str
    objective_name: str
    objective: Objective
    training: tuple[float, float]
    """The objective of the untuned and the tuned config, means over the training slices."""
    train: Sequence[str]
    judged: Sequence[str]


def write_config(
    path: Path, part: Struct, untuned: Mapping[str, float], origin: Origin, judgement: Judgement
) -> None:
    """Write *part*, the tuned group of a config, to *path*, whole or not at all. Raises OSError.

    *untuned* has the values that were, by field, of the keys that were searched.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join([*_head(origin, judgement), *_body(part, untuned), ""])
    write_whole(path, lambda file: file.write(text.encode()))


def _held_out(origin: Origin, judgement: Judgement) -> str:
    show = origin.objective.show
    return (
        f"{show(judgement.untuned)} untuned, {show(judgement.tuned)} tuned: "
        f"{interval_words(judgement, origin.objective)} (95 % interval)"
    )


def interval_words(judgement: Judgement, objective: Objective) -> str:
    """Return the change on the held-out slices with its interval."""
    low, high = change(judgement.low, objective), change(judgement.high, objective)
    return f"{change(judgement.change, objective)}, {low} to {high}"


def change(value: float, objective: Objective) -> str:
    """Return a change as people write it."""
    return f"{100 * value:+.2f} {'points' if objective.unit == '%' else '%'}"


_VERDICTS = {
    "better": "better than untuned on held-out slices",
    "worse": "WORSE than untuned on held-out slices",
    "not shown to differ": "NOT shown to differ from untuned on held-out slices",
}


def verdict_words(judgement: Judgement) -> str:
    """Return the verdict as a clause."""
    return _VERDICTS[judgement.verdict]


def _head(origin: Origin, judgement: Judgement) -> Iterator[str]:
    show = origin.objective.show
    yield (
        f"# Tuned for {origin.objective_name} on {origin.workload}, {verdict_words(judgement)} "
        f"({interval_words(judgement, origin.objective)})."
    )
    yield "# Written by `vertumnus tune`; tune again rather than edit."
    yield f"#   command   {shlex.join(origin.command)}"
    yield f"#   date      {origin.date}, {origin.versions}"
    yield f"#   for       {origin.hardware}; simulated"
    yield f"#   searched  {origin.search}"
    yield (
        f"#   training  {show(origin.training[0])} untuned, {show(origin.training[1])} tuned, mean over "
        f"{', '.join(origin.train)}"
    )
    yield f"#   held out  {_held_out(origin, judgement)}, mean over {', '.join(origin.judged)}"


def _body(part: Struct, untuned: Mapping[str, float]) -> Iterator[str]:
    yield from _lines(msgspec.to_builtins(part, str_keys=True), untuned)


def _lines(plain: Mapping[str, Any], untuned: Mapping[str, float], above: str = "") -> Iterator[str]:
    for key, value in plain.items():
        if isinstance(value, dict):
            yield f"{key}:"
            yield from (f"  {line}" for line in _lines(value, untuned, f"{above}{key}."))
            continue
        was = untuned.get(f"{above}{key}")
        *lines, last = yaml.safe_dump({key: value}, sort_keys=False, width=100).splitlines()
        yield from lines
        yield last if was is None or was == value else f"{last}  # untuned {was:g}"
