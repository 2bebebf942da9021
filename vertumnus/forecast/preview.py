"""The operator's preview: what a split or merge would do, asked of a pool that stands between two events."""

from collections.abc import Collection
from typing import NamedTuple

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.forecast import ForecastOutcome
from vertumnus.domain.move import Direction, Move
from vertumnus.domain.units import Nanoseconds
from vertumnus.forecast.question import Assumptions, Question, near_future
from vertumnus.forecast.trial import answer
from vertumnus.policy.control_plane import ControlPlane
from vertumnus.policy.recent import Recurrence
from vertumnus.serving.snapshot import take_snapshot
from vertumnus.workers.fleet import Fleet


class Preview(NamedTuple):
    """A move beside staying."""

    at_ns: Nanoseconds
    span_ns: Nanoseconds
    """How far it looks, and how long a past stands for that."""
    move: Move
    stay: ForecastOutcome
    moved: ForecastOutcome
    missing_bytes: int
    """Of the blocks that the new workers will lack."""


def preview(
    fleet: Fleet,
    control: ControlPlane,
    at_ns: Nanoseconds,
    wish: tuple[Direction, Collection[CpGroup]],
    span_ns: Nanoseconds,
    assumptions: Assumptions,
) -> Preview:
    """Return what *wish*, a kind of move and the workers that it takes, would do at *at_ns*.

    Fleet and control plane stay as they are. Raises ConfigError with every reason when it is illegal.
    """
    move = control.legal_move(*wish)
    future = near_future(control, at_ns, Recurrence(span_ns))
    question = Question(take_snapshot(fleet, control, at_ns), (move,), future, assumptions)
    stay, moved = answer(question)
    block_bytes = assumptions.profile.kv_bytes_per_token * assumptions.block_tokens
    return Preview(at_ns, min(span_ns, at_ns), move, stay, moved, moved.missing_blocks * block_bytes)
