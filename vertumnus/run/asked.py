"""How a run was asked for."""

from collections.abc import Callable, Sequence
from typing import NamedTuple


class Asked(NamedTuple):
    """The words that asked for a run, the sweep that it belongs to, and who hears how far it is."""

    words: Sequence[str] = ()
    """Its overrides as typed."""
    sweep: str | None = None
    """Id of the sweep that it is a job of."""
    config_hash: str | None = None
    """Of the configuration as asked for, before the run settles what was left to it."""
    tell: Callable[[int, int], None] | None = None
    """Called now and then with the ended and the planned requests, in place of a progress bar."""
