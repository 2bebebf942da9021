"""What a benchmark is given, what it returns, and how repeats become one line."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import thread_time_ns
from typing import Literal, TypeAlias

import numpy as np
from msgspec import Struct

Unit: TypeAlias = Literal["us", "ns", "1/s", "bytes/s", "x"]
"""Microseconds or nanoseconds an operation, operations or bytes a second, or a ratio."""


class Settings(Struct, frozen=True, kw_only=True):
    """How thoroughly to measure, and on what."""

    scratch: Path
    """An existing folder for what a benchmark writes; its owner removes it."""
    repeats: int = 7
    """Times that each number is measured, >= 1."""
    quick: bool = False
    """Small sizes, to see that everything works; the numbers are rough."""
    trace: Path | None = None
    """A Mooncake trace for the benchmarks that replay one; None: the generated tool-agent trace."""

    def size(self, full: int, quick: int) -> int:
        """Return how much to do in one repeat."""
        return quick if self.quick else full


class Result(Struct, frozen=True, kw_only=True):
    """One number: its median over the repeats, and the range of the middle eight tenths of them."""

    name: str
    unit: Unit
    median: float
    p10: float
    p90: float
    n: int
    """Repeats."""
    per_repeat: int
    """Operations that one repeat times."""


class Skipped(Struct, frozen=True):
    """A benchmark that this machine cannot run, and why."""

    name: str
    reason: str


class NotHere(Exception):
    """Raised by a benchmark that this machine cannot run, with the reason."""


Benchmark: TypeAlias = Callable[[Settings], Iterator[Result]]


def result(name: str, unit: Unit, values: Sequence[float], per_repeat: int) -> Result:
    """Return the median and the 10th and 90th percentile of *values*, one for each repeat."""
    p10, median, p90 = (float(value) for value in np.percentile(values, (10, 50, 90)))
    return Result(name=name, unit=unit, median=median, p10=p10, p90=p90, n=len(values), per_repeat=per_repeat)


def ratios(numerators: Sequence[float], denominators: Sequence[float]) -> list[float]:
    """Return the ratio of each repeat, so that what slowed a whole repeat cancels out."""
    return [above / below for above, below in zip(numerators, denominators, strict=True)]


def timed_ns(action: Callable[[], object]) -> int:
    """Return this thread's processor time for *action* [ns], at least 1.

    Not wall time: on a shared machine that counts what others do in between.
    """
    started = thread_time_ns()
    action()
    return max(1, thread_time_ns() - started)
