"""The dialog before a move: what may be answered when."""

import asyncio
from concurrent.futures import Future

import pytest
from textual.app import App

from tests.support.consoles import text_of, until
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.move import Move
from vertumnus.domain.units import SECOND
from vertumnus_console.dialogs import confirm
from vertumnus_console.dialogs.confirm import ConfirmMove
from vertumnus_console.preview import Preview

PREVIEW = Preview(
    554 * SECOND,
    Move("split", (CpGroup(0, 4),), (CpGroup(0, 2), CpGroup(2, 2))),
    ("a line",),
    None,  # type: ignore[arg-type]
)


@pytest.mark.parametrize("is_foretold", [False, True])
def test_yes_need_not_wait_for_the_forecast(monkeypatch: pytest.MonkeyPatch, is_foretold: bool) -> None:
    """Before the preview y does nothing; before the forecast it does the move, and the dialog says so."""
    told: Future[Preview] = Future()
    foretold: Future[tuple[str, ...]] = Future()
    answers: list[bool | None] = []
    monkeypatch.setattr(confirm, "forecasting", lambda question: foretold)

    async def script() -> None:
        app = App[None]()
        async with app.run_test() as pilot:
            app.push_screen(ConfirmMove("split 0x4?", told), answers.append)
            await pilot.press("y")
            assert answers == [] and text_of(app, "#choice") == "n or escape: leave it"
            told.set_result(PREVIEW)
            await until(pilot, lambda: "without the forecast" in text_of(app, "#choice"), "the question")
            assert app.screen.query_one(".dialog").border_title == "split 0x4? at 9:14.0"
            assert "forecasting" in text_of(app, "#forecast")
            if is_foretold:
                foretold.set_result(("stay", "split"))
                await until(pilot, lambda: text_of(app, "#forecast") == "stay\nsplit", "the forecast")
                assert "without" not in text_of(app, "#choice")
            await pilot.press("y")
            assert answers == [True]

    asyncio.run(script())
