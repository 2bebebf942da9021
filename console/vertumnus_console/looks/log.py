"""The newest records of the log."""

from vertumnus.domain.units import Nanoseconds
from vertumnus_console.folds import Told
from vertumnus_console.replay import Replay


def log(replay: Replay, _now: Nanoseconds) -> tuple[Told, ...]:
    """Return the newest records, newest first."""
    return tuple(reversed(replay.folds.tape))
