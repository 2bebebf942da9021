"""Split and merge in place: DRAIN -> PARK -> ADOPT -> COMMIT, as a table (sec. 6.2, 8).

Rules
* Workers that take part leave the candidate set at once; their queues are placed elsewhere, running
  steps and hand-offs finish under the old geometry.
* Nobody adopts the new epoch before every source is at a boundary: a step never mixes geometries. The
  first sibling of a merge that is there waits for the other (PARK).
* The new workers are schedulable when every rank has acknowledged the epoch, and not before.
* A source that is lost while draining reopens the others. Once the epoch is out there is no way back:
  a lost rank or a missing acknowledgement fails closed, the ranks stay out of service.

The reported switch is ADOPT to COMMIT; drain and park come before it and are told apart.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import ProtocolError
from vertumnus.domain.facts import (
    AnyFact,
    EpochAdopted,
    RankLost,
    StepFailed,
    TimerFired,
    WorkerDrained,
    WorkerFormed,
)
from vertumnus.domain.move import Move
from vertumnus.domain.orders import AdoptEpoch, AnyOrder, CloseTransition, Drain, Reopen, SetTimer
from vertumnus.domain.units import Epoch, Nanoseconds, Rank


class Stage(StrEnum):
    """Where a transition stands; COMMIT is its end and needs no state."""

    DRAIN = "drain"
    PARK = "park"
    ADOPT = "adopt"


class Transition(Struct):
    """One change of composition under way."""

    move: Move
    epoch: Epoch
    stage: Stage
    undrained: set[CpGroup]
    unadopted: set[Rank]
    unformed: set[CpGroup]


class Transitions:
    """All transitions under way, each on workers of its own."""

    def __init__(self, switch_timeout_ns: Nanoseconds) -> None:
        self._timeout_ns = switch_timeout_ns
        self._open: dict[Epoch, Transition] = {}
        self._last_epoch: Epoch = 0

    def __len__(self) -> int:
        return len(self._open)

    @property
    def busy(self) -> frozenset[CpGroup]:
        """The workers that take part in one, before and after."""
        return frozenset(g for t in self._open.values() for g in (*t.move.sources, *t.move.targets))

    @property
    def under_way(self) -> tuple[Transition, ...]:
        """All of them, in order of their epochs."""
        return tuple(self._open.values())

    def begin(self, move: Move) -> list[AnyOrder]:
        """Start *move*. Raises ProtocolError when a worker takes part in another transition already."""
        if not self.busy.isdisjoint(move.sources):
            raise ProtocolError(f"{move}: a worker is in transition already")
        self._last_epoch += 1
        ranks = {rank for group in move.sources for rank in group.ranks}
        self._open[self._last_epoch] = Transition(
            move, self._last_epoch, Stage.DRAIN, set(move.sources), ranks, set(move.targets)
        )
        return [Drain(worker) for worker in move.sources]

    def handle(self, fact: AnyFact) -> list[AnyOrder]:
        """Take a fact that may concern a transition; return what follows for the one that it does."""
        transition = self._concerned(fact)
        rule = None if transition is None else RULES.get((transition.stage, type(fact)))
        if transition is None or rule is None:
            return []
        orders = rule(transition, fact, self._timeout_ns)
        if any(isinstance(order, CloseTransition) for order in orders):
            del self._open[transition.epoch]
        return orders

    def _concerned(self, fact: AnyFact) -> Transition | None:
        match fact:
            case EpochAdopted():
                transition = self._open.get(fact.epoch)
                if transition is not None and fact.rank not in transition.unadopted:
                    raise ProtocolError(
                        f"rank {fact.rank} adopted epoch {fact.epoch} twice, or is none of its ranks"
                    )
                return transition
            case WorkerFormed():
                return self._open.get(fact.epoch)
            case TimerFired():
                return self._open.get(_epoch_of(fact.name))
            case StepFailed(ends_worker=False):
                return None  # its worker drains on
            case WorkerDrained() | StepFailed():
                return self._with(lambda groups: fact.worker in groups)
            case RankLost():
                return self._with(lambda groups: any(fact.rank in group.ranks for group in groups))
        return None

    def _with(self, concerns: Callable[[tuple[CpGroup, ...]], bool]) -> Transition | None:
        return next((t for t in self._open.values() if concerns(t.move.sources)), None)


def switch_timer(epoch: Epoch) -> str:
    """Return the name of the timer that ends the wait for an epoch's acknowledgements."""
    return f"switch {epoch}"


def _epoch_of(timer: str) -> Epoch:
    verb, _, number = timer.partition(" ")
    return int(number) if verb == "switch" else -1


Rule: TypeAlias = Callable[[Transition, AnyFact, Nanoseconds], list[AnyOrder]]


def _drained(transition: Transition, fact: AnyFact, timeout_ns: Nanoseconds) -> list[AnyOrder]:
    assert isinstance(fact, WorkerDrained)
    transition.undrained.discard(fact.worker)
    if transition.undrained:
        transition.stage = Stage.PARK
        return []
    transition.stage = Stage.ADOPT
    return [
        AdoptEpoch(transition.move.targets, transition.epoch),
        SetTimer(switch_timer(transition.epoch), fact.at + timeout_ns),
    ]


def _reopened(transition: Transition, fact: AnyFact, _timeout_ns: Nanoseconds) -> list[AnyOrder]:
    lost = _lost_group(transition, fact)
    others = [worker for worker in transition.move.sources if worker != lost]
    reason = f"worker {lost} was lost while it drained"
    return [*map(Reopen, others), _close(transition, "reopened", reason)]


def _acknowledged(transition: Transition, fact: AnyFact, _timeout_ns: Nanoseconds) -> list[AnyOrder]:
    assert isinstance(fact, EpochAdopted)
    transition.unadopted.discard(fact.rank)
    return []


def _formed(transition: Transition, fact: AnyFact, _timeout_ns: Nanoseconds) -> list[AnyOrder]:
    assert isinstance(fact, WorkerFormed)
    transition.unformed.discard(fact.worker)
    if transition.unformed:
        return []
    if transition.unadopted:
        raise ProtocolError(
            f"epoch {transition.epoch}: formed before ranks {sorted(transition.unadopted)} adopted it"
        )
    return [_close(transition, "committed", ""), *map(Reopen, transition.move.targets)]


def _failed(transition: Transition, fact: AnyFact, _timeout_ns: Nanoseconds) -> list[AnyOrder]:
    if isinstance(fact, TimerFired):
        reason = f"ranks {sorted(transition.unadopted)} did not acknowledge epoch {transition.epoch} in time"
    else:
        reason = f"a rank was lost in the switch to epoch {transition.epoch}"
    return [_close(transition, "failed", reason)]


def _close(transition: Transition, outcome: str, reason: str) -> CloseTransition:
    move = transition.move
    return CloseTransition(transition.epoch, move.kind, move.sources, move.targets, outcome, reason)  # type: ignore[arg-type]


def _lost_group(transition: Transition, fact: AnyFact) -> CpGroup:
    if isinstance(fact, RankLost):
        return next(group for group in transition.move.sources if fact.rank in group.ranks)
    assert isinstance(fact, StepFailed)
    return fact.worker


RULES: dict[tuple[Stage, type[AnyFact]], Rule] = {
    (Stage.DRAIN, WorkerDrained): _drained,
    (Stage.PARK, WorkerDrained): _drained,
    (Stage.DRAIN, RankLost): _reopened,
    (Stage.PARK, RankLost): _reopened,
    (Stage.DRAIN, StepFailed): _reopened,
    (Stage.PARK, StepFailed): _reopened,
    (Stage.ADOPT, EpochAdopted): _acknowledged,
    (Stage.ADOPT, WorkerFormed): _formed,
    (Stage.ADOPT, RankLost): _failed,
    (Stage.ADOPT, TimerFired): _failed,
}
"""Every step of a transition: its stage, the fact, what follows. What is not here changes nothing."""
