"""Recent placements with all their terms: a live `explain`."""

from vertumnus.domain.units import Nanoseconds
from vertumnus_console.folds import Choice
from vertumnus_console.replay import Replay


def decisions(replay: Replay, _now: Nanoseconds) -> tuple[Choice, ...]:
    """Return the newest placements, newest first."""
    return tuple(reversed(replay.folds.choices))
