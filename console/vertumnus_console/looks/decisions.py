"""Recent placements with all their terms: a live `explain`."""

from vertumnus.domain.units import Nanoseconds
from vertumnus.policy.placement import Decision
from vertumnus_console.folds import Choice
from vertumnus_console.replay import Replay


def decisions(replay: Replay, _now: Nanoseconds) -> tuple[Choice, ...]:
    """Return the newest placements, newest first."""
    return tuple(reversed(replay.folds.choices))


def runner_up(decision: Decision) -> int | None:
    """Return the place of the second best offer; None when there was no choice."""
    others = [
        (cost, place)
        for place, cost in enumerate(decision.costs)
        if cost is not None and place != decision.chosen
    ]
    return min(others)[1] if others else None
