"""Whether the windows ask for a split or a merge (sec. 6.2).

The rules, in order:

1. Capacity: demand above ``upper`` times the capacity asks for a split, below ``lower`` for a merge.
2. Mix: the long fraction more than ``long_change``, and more than chance, above its stable level asks for
   a merge, below it for a split. We read the paper's "aggregate workload remains relatively stable" as:
   demand does not ask for the opposite. Demand in seconds rises with the long fraction at a constant
   request rate, so a bound on its change would hide the very windows that the rule is for.
3. Capacity wins a conflict, in the very window in which it shows.
4. A condition is acted on once it has shown ``persistence`` windows in a row, by the same rule and in the
   same direction; it stays in force while it keeps showing.
5. After a transition ``cooldown_windows`` windows ask for nothing and count towards no persistence.
"""

from typing import NamedTuple

from msgspec import Struct

from vertumnus.domain.cluster import Composition
from vertumnus.domain.move import Direction
from vertumnus.domain.units import to_seconds
from vertumnus.domain.wording import counted
from vertumnus.policy.reconfig.capacity import Capacity
from vertumnus.policy.reconfig.conditions import Cause, Condition, StableMix, mix_change, strain
from vertumnus.policy.reconfig.config import Thresholds
from vertumnus.policy.reconfig.window import WindowReport


class Signal(Struct, frozen=True, kw_only=True):
    """What one window says."""

    direction: Direction | None
    """What to do now: the condition has persisted and no cooldown holds."""
    seen: Direction | None
    """What this window alone asks for."""
    cause: Cause | None
    """The rule behind `seen` (and `direction`); None when nothing is asked for."""
    persistence: int
    """Windows in a row, this one included, that showed it; 0 without a condition and during a cooldown."""
    reason: str
    """The rule with its numbers, for the log and the console."""
    demand_s: float
    """D(k), as routed [s of work]."""
    capacity_s: float
    """kappa * H over the workers of the composition [s of work]."""
    utilisation: float | None
    """Demand over capacity; None without a worker in service."""
    long_fraction: float | None
    """The share of long requests; None when nothing arrived."""
    stable_long_fraction: float | None
    """The level that it was compared with; None before the first arrival."""


class _Streak(NamedTuple):
    """How many windows in a row one rule has asked for one direction."""

    direction: Direction | None = None
    windows: int = 0


class Trigger:
    """Turns window reports into signals; which move is possible is not its concern."""

    def __init__(self, thresholds: Thresholds, capacity: Capacity) -> None:
        self._thresholds = thresholds
        self._capacity = capacity
        self._mix = StableMix(thresholds.persistence)
        self._streaks: dict[Cause, _Streak] = {}
        self._cooling = 0

    def observe(self, report: WindowReport, composition: Composition) -> Signal:
        """Take the next window, on the composition observed at its end, and return what it says.

        Raises ConfigError, before anything changes, when kappa is missing for a degree present.
        """
        demand_s = to_seconds(report.demand_ns)
        capacity_s = self._capacity.of(composition) * to_seconds(report.span_ns)
        stable = self._mix.fraction
        strained = strain(demand_s, capacity_s, self._thresholds)
        changed = mix_change(report, self._mix, self._thresholds)
        self._mix.note(report, has_moved=changed is not None)
        is_cooling = self._cool()
        shown = _agreed(strained, changed)
        self._count([] if is_cooling else shown)
        leading = self._leading(shown)
        persistence = self._windows(leading)
        is_due = persistence >= self._thresholds.persistence
        return Signal(
            direction=leading.direction if leading and is_due else None,
            seen=leading.direction if leading else None,
            cause=leading.cause if leading else None,
            persistence=persistence,
            reason=self._reason(leading, changed, persistence, is_cooling),
            demand_s=demand_s,
            capacity_s=capacity_s,
            utilisation=demand_s / capacity_s if capacity_s else None,
            long_fraction=report.long_fraction,
            stable_long_fraction=stable,
        )

    def retune(self, thresholds: Thresholds) -> None:
        """Compare with *thresholds* from the next window on; windows that persisted count on."""
        self._thresholds = thresholds

    def note_transition(self) -> None:
        """Note that the composition changes: at a transition's start, at its end, or at both.

        The cooldown starts anew, what has persisted is forgotten, and the long fraction of the last
        windows becomes the stable level.
        """
        self._cooling = self._thresholds.cooldown_windows
        self._streaks = {}
        self._mix.settle()

    def _cool(self) -> bool:
        """Return whether this window lies in a cooldown, and count it."""
        is_cooling = self._cooling > 0
        self._cooling -= is_cooling
        return is_cooling

    def _count(self, shown: list[Condition]) -> None:
        before = self._streaks
        self._streaks = {}
        for cause, direction, _ in shown:
            last = before.get(cause, _Streak())
            self._streaks[cause] = _Streak(direction, last.windows + 1 if last.direction == direction else 1)

    def _windows(self, condition: Condition | None) -> int:
        return self._streaks.get(condition.cause, _Streak()).windows if condition else 0

    def _leading(self, shown: list[Condition]) -> Condition | None:
        """Return the condition to act on: the first that has persisted, else the first."""
        due = [c for c in shown if self._windows(c) >= self._thresholds.persistence]
        return next(iter([*due, *shown]), None)

    def _reason(
        self, leading: Condition | None, changed: Condition | None, persistence: int, is_cooling: bool
    ) -> str:
        if leading is None:
            return "demand is within the thresholds and the mix is stable"
        parts = [leading.text]
        if changed is not None and changed.direction != leading.direction:
            parts.append(f"capacity goes before the mix ({changed.text})")
        if is_cooling:
            parts.append(f"cooling down, {counted(self._cooling, 'more window')}")
        elif persistence < self._thresholds.persistence:
            parts.append(f"window {persistence} of {self._thresholds.persistence}")
        return "; ".join(parts)


def _agreed(strained: Condition | None, changed: Condition | None) -> list[Condition]:
    """Return what is asked for, capacity first; a change of the mix that contradicts it is left out."""
    if strained is None:
        return [changed] if changed else []
    return [strained, changed] if changed and changed.direction == strained.direction else [strained]
