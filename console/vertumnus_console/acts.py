"""What operators did: every wish with its answer, and the speed that a paced run goes at."""

from typing import NamedTuple

from vertumnus.domain.facts import OperatorActed
from vertumnus.domain.orders import Answer
from vertumnus.domain.units import Nanoseconds
from vertumnus.records.faults import wished
from vertumnus.records.timeline import Handlers


class Act(NamedTuple):
    """An operator's wish and what became of it."""

    t_ns: Nanoseconds
    action_id: int
    who: str
    what: str
    accepted: bool
    reason: str
    """Why it was refused, or what it changed."""

    def __str__(self) -> str:
        outcome = "accepted" if self.accepted else "refused"
        named, _, rest = self.reason.partition(": ")  # a refusal names the wish once more
        reason = rest if rest and self.what.startswith(named) else self.reason
        return f"{self.who}: {self.what} {outcome}" + (f", {reason}" if reason else "")


class Acts:
    """Answered wishes in order."""

    def __init__(self, speed: float | None) -> None:
        """Begin with the configured *speed* of a paced run; None where there is none."""
        self.acts: list[Act] = []
        self.speed = speed
        """Virtual seconds a second now."""
        self.handlers: Handlers = {OperatorActed: self._acted, Answer: self._answered}
        self._open: dict[int, OperatorActed] = {}

    def _acted(self, fact: OperatorActed) -> None:
        self._open[fact.action_id] = fact

    def _answered(self, order: Answer) -> None:
        wish = self._open.pop(order.action_id, None)
        if wish is None:
            return
        if wish.action == "speed" and order.accepted and isinstance(wish.value, int | float):
            self.speed = float(wish.value)
        self.acts.append(act_of(wish, order.accepted, order.reason))


def act_of(wish: OperatorActed, accepted: bool, reason: str) -> Act:
    """Return *wish* with its answer."""
    return Act(wish.at, wish.action_id, wish.who, wished(wish), accepted, reason)
