"""The time of orders: they carry none, each is given at the instant of the fact before it in the log."""

from msgspec import Struct

from vertumnus.domain.units import Nanoseconds


class Clock(Struct):
    """The latest instant that a fact told; one for all folds of a run, set by `RunFolds`."""

    now: Nanoseconds = 0
