"""An operator at a run on ranks: every action, its refusal, read-only, and its sudden end."""

import asyncio
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.support.attachable import attachable
from tests.support.consoles import drive, text_of, until
from tests.support.operating import (
    acted,
    attached,
    can_be_copied,
    can_be_reclaimed,
    choose,
    point,
    says,
    tune,
)
from vertumnus.actions.client import ActionClient
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.orders import CloseTransition
from vertumnus.records.log import read_log
from vertumnus.run.audit import audit_run
from vertumnus_console.__main__ import console

pytestmark = pytest.mark.live

WORDS = ("+experiment=reconfigure_live", "arrival.rate=null", "cache=off")
LEFT, RIGHT, WHOLE = CpGroup(0, 1), CpGroup(1, 1), CpGroup(0, 2)


def test_every_action_on_ranks(tmp_path: Path) -> None:
    """Drain, merge, split, modes, parameters, prefixes; each as the run answered it, and its log replays."""
    with attachable(tmp_path, *WORDS) as going:
        app = console(tmp_path, "latest", speed=1.0, who="ann")

        async def confirmed(pilot: "Pilot[None]", key: str, worker: CpGroup) -> None:
            await point(pilot, app, worker)
            await pilot.press(key)
            await until(pilot, lambda: "y or enter" in text_of(app, "#choice"), "the question")
            await pilot.press("y")

        async def on_prefix(pilot: "Pilot[None]", key: str, find, said: str) -> None:
            """Try until the run, which goes on meanwhile, takes it."""
            for _ in range(50):
                found = await asyncio.wrap_future(app.screen.feed.answer(find))
                if found is not None:
                    await choose(pilot, app, key, *found)
                    wish = said.format(*found)
                    await until(pilot, lambda w=wish: w in text_of(app, "#message"), wish)
                    if "accepted" in text_of(app, "#message"):
                        return
                await pilot.pause(0.1)
            raise AssertionError(f"never: {said}")

        async def script(pilot: "Pilot[None]") -> None:
            await attached(pilot, app)
            assert text_of(app, "#top").startswith("EXECUTED  LIVE  AUTO")
            await pilot.press("plus")
            assert "an executed run keeps real time" in text_of(app, "#message")
            await pilot.press("a")
            await says(pilot, app, "ann: manual accepted")
            await point(pilot, app, LEFT)
            await pilot.press("d")
            await says(pilot, app, "ann: drain 0x1 accepted")
            await point(pilot, app, RIGHT)
            await pilot.press("d")
            await says(pilot, app, "refused, drain 1x1: it is the last worker that serves")
            await point(pilot, app, LEFT)
            await pilot.press("d")
            await says(pilot, app, "ann: reopen 0x1 accepted")
            await tune(pilot, app, "0.5")
            await says(pilot, app, "refused, tune policy.beta: beta must be at least 1, got 0.5")
            await tune(pilot, app, "1.5")
            await says(pilot, app, "policy.beta 1 -> 1.5")
            await pilot.press("z")
            await says(pilot, app, "policy.beta 1.5 -> 1")
            await pilot.press("t")
            await on_prefix(pilot, "y", can_be_copied, "ann: copy prefix {} to {}")
            await on_prefix(pilot, "x", can_be_reclaimed, "ann: reclaim prefix {} at {}")
            await confirmed(pilot, "m", LEFT)
            await says(pilot, app, "ann: merge 0x1 + 1x1 accepted")
            await pilot.press("o")
            await until(pilot, lambda: "1 x CP2, 2 GPUs" in text_of(app, "#composition"), "merged")
            await pilot.press("f")
            await says(pilot, app, "ann: off accepted")
            await confirmed(pilot, "s", WHOLE)
            await says(pilot, app, "ann: split 0x2 refused, moves were turned off")
            await pilot.press("f")
            await says(pilot, app, "ann: manual accepted")
            await confirmed(pilot, "s", WHOLE)
            await says(pilot, app, "ann: split 0x2 accepted")
            await pilot.press("o")
            await until(pilot, lambda: "2 x CP1, 2 GPUs" in text_of(app, "#composition"), "split")
            await pilot.press("a")
            await says(pilot, app, "ann: auto accepted")

        drive(app, script)
        assert going.interrupt() == 130
    closed = [r.body for r in read_log(going.run.log).records if isinstance(r.body, CloseTransition)]
    assert [order.outcome for order in closed if order.kind == "merge"][:1] == ["committed"]
    assert audit_run(going.run).is_clean


def test_a_reader_and_a_sudden_end_on_ranks(tmp_path: Path) -> None:
    """Read-only has no action on keys or socket; two wishes at once: one is granted; a killed run is told."""
    with attachable(tmp_path, *WORDS) as going:
        app = console(tmp_path, "latest", speed=1.0, who="eve", reads_only=True)
        reader = ActionClient(going.run.actions, "eve", reads_only=True)
        clients = [ActionClient(going.run.actions, who) for who in ("ann", "bob")]

        async def script(pilot: "Pilot[None]") -> None:
            await until(pilot, lambda: "READ-ONLY" in text_of(app, "#top"), "read-only")
            await pilot.press("b", "s", "m", "d", "a", "f", "p", "z", "t", "y", "x", "o")
            assert reader.wait(reader.act("merge", (LEFT, RIGHT)), 30).reason == "this console is read-only"
            assert not {"eve"} & {fact.who for fact in acted(going.run)}
            numbers = [client.act("merge", (LEFT, RIGHT)) for client in clients]
            answers = [client.wait(number, 30) for client, number in zip(clients, numbers, strict=True)]
            assert sorted(answer.accepted for answer in answers) == [False, True]
            await until(pilot, lambda: "1 x CP2, 2 GPUs" in text_of(app, "#composition"), "merged")
            going.kill()
            await says(pilot, app, "the run has ended: killed")
            await pilot.press("left", "w", "e", "o")

        drive(app, script)
        for client in (reader, *clients):
            client.close()
