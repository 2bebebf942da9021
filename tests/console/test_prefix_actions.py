"""Copies and deletions of a prefix from the trie screen, on a paced run that is held."""

import asyncio
from pathlib import Path

from textual.pilot import Pilot

from tests.support.consoles import drive, text_of, until
from tests.support.operating import attached, can_be_copied, can_be_reclaimed, choose, says
from tests.support.paced_runs import paced_run
from tests.support.still_clock import StillClock
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.facts import ReplicasDeleted, TransferFinished
from vertumnus.domain.orders import Reclaim, Transfer
from vertumnus.domain.units import SECOND, BlockKey
from vertumnus.records.log import read_log
from vertumnus.run.audit import audit_run
from vertumnus_console.__main__ import console
from vertumnus_console.app import ConsoleApp

WORDS = ("policy=paper", "cache=off")
"""Nothing but operators copies."""


def has_ended(app: ConsoleApp) -> bool:
    """Whether the console has told that the copy is over."""
    return any(event.kind == "copy" for event in app.screen.drawn.view.events)


def test_a_prefix_is_copied_and_deleted_by_hand(tmp_path: Path) -> None:
    """y and x show what each worker would mean; the run does what is chosen."""
    chosen: list[tuple[BlockKey, CpGroup]] = []
    clock = StillClock()
    with paced_run(tmp_path, *WORDS, speed=20.0, clock=clock) as going:
        app = console(tmp_path, "latest", speed=1.0, who="ann")

        async def script(pilot: "Pilot[None]") -> None:
            await attached(pilot, app)
            await pilot.press("y")
            assert "go to the trie (t)" in text_of(app, "#message")
            clock.let_pass(9 / 20.0)
            await until(pilot, lambda: app.screen.drawn.view.now_ns > 8 * SECOND, "eight seconds")
            await pilot.press("t")
            assert "y Copy" in text_of(app, "#keys") and "s Split" not in text_of(app, "#keys")
            for key, find, said in (
                ("y", can_be_copied, "ann: copy prefix {} to {} accepted"),
                ("x", can_be_reclaimed, "ann: reclaim prefix {} at {} accepted"),
            ):
                found = await asyncio.wrap_future(app.screen.feed.answer(find))
                assert found is not None
                what, where = found
                chosen.append((what, where))
                await choose(pilot, app, key, what, where)
                await says(pilot, app, said.format(what, where))
                clock.let_pass(1 / 20.0)
                await until(pilot, lambda: has_ended(app), "the copy's end")

        drive(app, script)
        going.finish()
    bodies = [record.body for record in read_log(going.run.log).records]
    (copy,) = [body for body in bodies if isinstance(body, Transfer)]
    (deletion,) = [body for body in bodies if isinstance(body, Reclaim)]
    assert (copy.path[-1], copy.destination) == chosen[0]
    assert (deletion.keys[0], deletion.worker) == chosen[1]
    assert [body.transfer_id for body in bodies if isinstance(body, TransferFinished)] == [copy.transfer_id]
    gone = [body for body in bodies if isinstance(body, ReplicasDeleted)]
    assert sum(len(evicted.keys) for body in gone for evicted in body.evicted) == len(deletion.keys)
    assert audit_run(going.run).is_clean
