"""An operator at a run on ranks: every action, its refusal, read-only, and its sudden end."""

from pathlib import Path
from typing import get_args

import pytest
from textual.pilot import Pilot

from tests.support.attachable import attachable
from tests.support.consoles import drive, text_of, until
from tests.support.operating import acted, attached, says
from tests.support.trials import TRIALS, Operator, check_tried, try_all
from vertumnus.actions.client import ActionClient
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.facts import Action
from vertumnus.domain.orders import CloseTransition
from vertumnus.records.log import read_log
from vertumnus.run.audit import audit_run
from vertumnus_console.__main__ import console
from vertumnus_console.keys import of_kind

pytestmark = pytest.mark.live

SHORT = "{duration_s: 24, rate: 16, long_share: 0.0, long_tokens: 4096}"
LONG = "{duration_s: 48, rate: 0.5, long_share: 1.0, long_tokens: 49152}"
PHASES = ", ".join((SHORT, LONG) * 8)
"""Ten minutes of them: the run does not end before everything was tried, however slow the machine is."""
WORDS = (
    "+experiment=reconfigure_live",
    f"workload.phases=[{PHASES}]",
    "arrival.rate=null",
    "cache=off",
    "backend.start_timeout_s=300",
)
LEFT, RIGHT, WHOLE = CpGroup(0, 1), CpGroup(1, 1), CpGroup(0, 2)


def test_every_action_on_ranks(tmp_path: Path) -> None:
    """Each is refused, and then done, as the run answered it; the moves are executed, and its log replays."""
    with attachable(tmp_path, *WORDS) as going:
        app = console(tmp_path, "latest", speed=1.0, who="ann")
        bob = ActionClient(going.run.actions, "bob")

        async def script(pilot: "Pilot[None]") -> None:
            await attached(pilot, app)
            assert text_of(app, "#top").startswith("EXECUTED  LIVE  AUTO")
            await try_all(Operator(pilot, app, bob, WHOLE, None))

        drive(app, script)
        bob.close()
        assert going.interrupt() == 130
    check_tried(going.run, set(TRIALS) - {"speed"})
    closed = [r.body for r in read_log(going.run.log).records if isinstance(r.body, CloseTransition)]
    assert {"merge", "split"} <= {order.kind for order in closed if order.outcome == "committed"}
    assert audit_run(going.run).is_clean


def test_a_reader_and_a_sudden_end_on_ranks(tmp_path: Path) -> None:
    """Read-only has no action on keys or socket; two wishes at once: one is granted; a killed run is told."""
    with attachable(tmp_path, *WORDS, "controller=manual") as going:
        app = console(tmp_path, "latest", speed=1.0, who="eve", reads_only=True)
        reader = ActionClient(going.run.actions, "eve", reads_only=True)
        clients = [ActionClient(going.run.actions, who) for who in ("ann", "bob")]

        async def script(pilot: "Pilot[None]") -> None:
            await until(pilot, lambda: "READ-ONLY" in text_of(app, "#top"), "read-only")
            await pilot.press("b")
            for key in of_kind("act"):
                await pilot.press("t" if key.name in ("copy", "reclaim") else "o", key.keys)
                assert f"{key.name} changes the run" in text_of(app, "#message")
            for action in get_args(Action):
                assert reader.wait(reader.act(action), 30).reason == "this console is read-only"
            assert not acted(going.run)
            told = clients[0].wait(clients[0].act("auto"), 30)
            assert not told.accepted and "controller=manual has no controller" in told.reason
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
