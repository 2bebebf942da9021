"""Every action of the console, tried by its keys at a run: what the run refuses, and what it does."""

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import NamedTuple, TypeAlias

from textual.pilot import Pilot

from tests.support.consoles import PATIENCE_S, text_of, until
from tests.support.operating import (
    acted,
    attached,
    can_be_copied,
    can_be_reclaimed,
    look_for_places,
    pick,
    point,
    tune,
)
from tests.support.still_clock import LITTLE_S, StillClock, passing
from vertumnus.actions.client import ActionClient
from vertumnus.actions.protocol import Answered
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.facts import Action
from vertumnus.domain.orders import Answer
from vertumnus.domain.units import BlockKey
from vertumnus.records.log import read_log
from vertumnus.records.run_dir import RunDir
from vertumnus_console.app import ConsoleApp
from vertumnus_console.player import Player

Find: TypeAlias = Callable[[Player], tuple[BlockKey, CpGroup] | None]


class Operator:
    """Ann at her console; bob, who is faster, acts through a socket of his own."""

    def __init__(
        self,
        pilot: "Pilot[None]",
        app: ConsoleApp,
        bob: ActionClient,
        pair: CpGroup,
        clock: StillClock | None,
    ) -> None:
        """Have *pair*'s halves to merge and to split again; *clock* is that of a run that is paced."""
        self.pilot, self.app, self._bob = pilot, app, bob
        self.whole, self.left = pair, pair.halves[0]
        self.merged = f"{self.left} + {pair.halves[1]}"
        self._clock = clock
        self.is_paced = clock is not None

    async def press(self, *keys: str) -> None:
        """Press *keys*."""
        await self.pilot.press(*keys)

    async def says(self, text: str) -> None:
        """Wait until the console says *text*."""
        await self.shows(lambda: text in text_of(self.app, "#message"), f"message {text!r}")

    async def point(self, worker: CpGroup) -> None:
        """Put the cursor on *worker*, once it is there."""
        await self.shows(lambda: self._serves(worker), f"{worker} serves")
        await point(self.pilot, self.app, worker)

    async def shows(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until the screen has come to *condition*."""
        await until(self.pilot, passing(self._clock, condition), what)

    async def confirm(self, key: str, worker: CpGroup) -> None:
        """Ask for a move of *worker*, look at its preview, and say yes."""
        await self.point(worker)
        await self.press(key)
        await self.shows(lambda: "y or enter" in text_of(self.app, "#choice"), "the question")
        await self.press("y")

    def bob(self, action: Action, *workers: CpGroup, value: int | None = None) -> Answered:
        """Let bob act; no key is taken and nothing drawn until he has his answer."""
        return self._bob.wait(self._bob.act(action, workers, value=value), 30)

    @property
    def is_held(self) -> bool:
        """Whether the screen has it that the left worker is drained."""
        return any(each.group == self.left and each.held_by for each in self.app.screen.drawn.view.workers)

    def _serves(self, worker: CpGroup) -> bool:
        return any(
            each.group == worker and each.state != "forming" for each in self.app.screen.drawn.view.workers
        )

    async def at_prefix(self, key: str, find: Find, said: str, *, is_late: bool) -> None:
        """Ask for what *find* finds; when *is_late*, bob has had it done meanwhile and it is refused."""
        action: Action = "copy" if key == "y" else "reclaim"
        await self.press("t")
        given_up = monotonic() + PATIENCE_S
        while monotonic() < given_up:  # until what changes meanwhile stays as it was found
            found = await asyncio.wrap_future(self.app.screen.feed.answer(find))
            if found is None or not await look_for_places(self.pilot, self.app, key, *found):
                await self.pilot.pause(0.1)
                if self._clock is not None:
                    self._clock.let_pass(LITTLE_S)
                continue
            what, where = found
            is_first = is_late and self.bob(action, where, value=what).accepted
            await pick(self.pilot, self.app, where)
            told = f"ann: {said.format(what, where)} "
            await self.says(told)
            outcome = text_of(self.app, "#message").partition(told)[2]
            if outcome.startswith("refused" if is_first else "accepted") and is_first == is_late:
                return
        raise AssertionError(f"never: {said}")


Script: TypeAlias = Callable[[Operator], Awaitable[None]]


class Trial(NamedTuple):
    """One action."""

    keys: tuple[str, ...]
    """Keys that ask for it, by their names."""
    does: Script
    refused: Script | None
    """None where no run refuses it."""


async def _manual(ann: Operator) -> None:
    await ann.shows(lambda: "g Manual" in text_of(ann.app, "#keys"), "the controller moves")
    await ann.press("g")
    await ann.says("ann: manual accepted")


async def _auto(ann: Operator) -> None:
    await ann.shows(lambda: "a Auto" in text_of(ann.app, "#keys"), "the controller does not move")
    await ann.press("a")
    await ann.says("ann: auto accepted")


async def _off(ann: Operator) -> None:
    await ann.press("f")
    await ann.says("ann: off accepted")
    await ann.shows(lambda: "f Unfreeze" in text_of(ann.app, "#keys"), "frozen")
    await ann.press("f")
    await ann.says("ann: manual accepted")


async def _merge(ann: Operator) -> None:
    await ann.confirm("m", ann.left)
    await ann.says(f"ann: merge {ann.merged} accepted")


async def _split(ann: Operator) -> None:
    await ann.confirm("s", ann.whole)
    await ann.says(f"ann: split {ann.whole} accepted")
    await ann.point(ann.left)


async def _while_frozen(ann: Operator, key: str, worker: CpGroup, said: str) -> None:
    assert ann.bob("off").accepted
    await ann.confirm(key, worker)
    await ann.says(f"{said} refused, moves were turned off")
    assert ann.bob("manual").accepted


async def _merge_while_frozen(ann: Operator) -> None:
    await _while_frozen(ann, "m", ann.left, f"ann: merge {ann.merged}")


async def _split_while_frozen(ann: Operator) -> None:
    await _while_frozen(ann, "s", ann.whole, f"ann: split {ann.whole}")


async def _drain(ann: Operator) -> None:
    await ann.point(ann.left)
    await ann.press("d")
    await ann.says(f"ann: drain {ann.left} accepted")
    await ann.shows(lambda: ann.is_held, "drained")


async def _drain_what_is_drained(ann: Operator) -> None:
    await ann.point(ann.left)
    assert ann.bob("drain", ann.left).accepted
    ann.app.screen.action_drain()  # before the screen has it that bob was faster
    await ann.says(f"ann: drain {ann.left} refused, bob drained it already")
    assert ann.bob("reopen", ann.left).accepted
    await ann.shows(lambda: not ann.is_held, "open")


async def _reopen(ann: Operator) -> None:
    await ann.point(ann.left)
    await ann.press("d")
    await ann.says(f"ann: reopen {ann.left} accepted")
    await ann.shows(lambda: not ann.is_held, "open")


async def _reopen_what_is_open(ann: Operator) -> None:
    await ann.point(ann.left)
    assert ann.bob("reopen", ann.left).accepted
    ann.app.screen.action_drain()
    await ann.says(f"ann: reopen {ann.left} refused")
    assert ann.bob("drain", ann.left).accepted
    await ann.shows(lambda: ann.is_held, "drained")


async def _copy(ann: Operator) -> None:
    await ann.at_prefix("y", can_be_copied, "copy prefix {} to {}", is_late=False)


async def _copy_what_is_copied(ann: Operator) -> None:
    await ann.at_prefix("y", can_be_copied, "copy prefix {} to {}", is_late=True)


async def _reclaim(ann: Operator) -> None:
    await ann.at_prefix("x", can_be_reclaimed, "reclaim prefix {} at {}", is_late=False)


async def _reclaim_what_is_gone(ann: Operator) -> None:
    await ann.at_prefix("x", can_be_reclaimed, "reclaim prefix {} at {}", is_late=True)


async def _tune(ann: Operator) -> None:
    await tune(ann.pilot, ann.app, "1.5")
    await ann.says("policy.beta 1.5 accepted, policy.beta 1 -> 1.5")


async def _tune_too_low(ann: Operator) -> None:
    await tune(ann.pilot, ann.app, "nan")
    await ann.says("policy.beta nan refused, found 'nan', must be a number")
    await tune(ann.pilot, ann.app, "0.5")
    await ann.says("policy.beta 0.5 refused, beta must be at least 1, got 0.5")


async def _undo(ann: Operator) -> None:
    await ann.press("z")
    await ann.says("policy.beta 1.5 -> 1")


async def _undo_nothing(ann: Operator) -> None:
    await _undo(ann)
    await ann.press("z")
    await ann.says("ann: undo refused, no parameter was changed")
    await _tune(ann)


async def _speed(ann: Operator) -> None:
    if not ann.is_paced:
        return
    await ann.press("plus")
    await ann.says("ann: speed 1.0 accepted, 1x")
    await ann.shows(lambda: "LIVE 1x" in text_of(ann.app, "#top"), "faster")
    await ann.press("minus")
    await ann.says("ann: speed 0.5 accepted, 0.5x")
    await ann.shows(lambda: "LIVE 0.5x" in text_of(ann.app, "#top"), "slower")
    await ann.press("h")
    await ann.shows(lambda: "HELD" in text_of(ann.app, "#top"), "held")
    await ann.press("h")
    await ann.shows(lambda: "LIVE 0.5x" in text_of(ann.app, "#top"), "going on")


async def _speed_too_high(ann: Operator) -> None:
    if ann.is_paced:
        ann.app.screen.action_speed(1e9)
        await ann.says("refused: speed: must be from 0 (hold) to 1e+06")
    else:
        await ann.press("plus")
        await ann.says("an executed run keeps real time")
        assert "this run is executed" in ann.bob("speed", value=2).reason


TRIALS: dict[Action, Trial] = {
    "manual": Trial(("manual",), _manual, None),
    "merge": Trial(("merge",), _merge, _merge_while_frozen),
    "split": Trial(("split",), _split, _split_while_frozen),
    "off": Trial(("freeze",), _off, None),
    "drain": Trial(("drain",), _drain, _drain_what_is_drained),
    "reopen": Trial(("drain",), _reopen, _reopen_what_is_open),
    "copy": Trial(("copy",), _copy, _copy_what_is_copied),
    "reclaim": Trial(("reclaim",), _reclaim, _reclaim_what_is_gone),
    "tune": Trial(("parameters",), _tune, _tune_too_low),
    "undo": Trial(("undo",), _undo, _undo_nothing),
    "speed": Trial(("faster", "slower", "hold"), _speed, _speed_too_high),
    "auto": Trial(("auto",), _auto, None),
}
"""In an order in which each finds what it needs; ``auto`` is refused by a run without a controller."""


async def try_all(ann: Operator) -> None:
    """Have every action refused, then done."""
    await attached(ann.pilot, ann.app)
    for trial in TRIALS.values():
        if trial.refused is not None:
            await trial.refused(ann)
        await trial.does(ann)


def check_tried(run: RunDir, actions: set[Action]) -> None:
    """Check that the log of *run* has each of *actions* by ann accepted, and refused if that can be."""
    asked = {fact.action_id: fact.action for fact in acted(run) if fact.who == "ann"}
    answers = [record.body for record in read_log(run.log).records if isinstance(record.body, Answer)]
    mine = [answer for answer in answers if answer.action_id in asked]
    done = {asked[answer.action_id] for answer in mine if answer.accepted}
    refused = {asked[answer.action_id] for answer in mine if not answer.accepted}
    assert done == actions
    # a speed is refused before it gets into the log
    assert refused == {action for action in actions if TRIALS[action].refused is not None} - {"speed"}
