"""The dialog before a move: what may be answered when, and what it says while the run goes on."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future

import pytest
from textual.app import App
from textual.pilot import Pilot

from tests.support.consoles import text_of, until
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.move import Move
from vertumnus.domain.units import SECOND
from vertumnus.forecast.question import Question
from vertumnus_console.dialogs import confirm
from vertumnus_console.dialogs.confirm import ConfirmMove, Matter
from vertumnus_console.preview import Forecast, Preview

SPLIT = Move("split", (CpGroup(0, 4),), (CpGroup(0, 2), CpGroup(2, 2)))


def a_preview(at_s: int, line: str) -> Preview:
    """What is known at *at_s*."""
    return Preview(at_s * SECOND, SPLIT, (line,))


class Pool:
    """Answers what the dialog asks when the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(confirm, "AGAIN_S", 0.0)
        monkeypatch.setattr(confirm, "forecasting", lambda asked: self._ask(self.forecasts))
        self.looks: list[Future[Preview]] = []
        self.forecasts: list[Future[Forecast]] = []
        self.answers: list[bool | None] = []
        self.goes_on = True
        self.app = App[None]()
        self._matter = Matter(
            "split 0x4?", lambda: self._ask(self.looks), Future[Question], lambda: self.goes_on
        )

    @staticmethod
    def _ask(asked: list[Future]) -> Future:
        asked.append(Future())
        return asked[-1]

    def drive(self, script: Callable[["Pilot[None]"], Awaitable[None]]) -> None:
        """Run *script* with the dialog open."""

        async def go() -> None:
            async with self.app.run_test() as pilot:
                self.app.push_screen(ConfirmMove(self._matter), self.answers.append)
                await pilot.pause()
                await script(pilot)

        asyncio.run(go())

    async def tells(self, pilot: "Pilot[None]", told: Preview | ConfigError, where: str, what: str) -> None:
        """Answer the dialog's next look with *told*, and wait until part *where* says *what*."""
        await until(pilot, lambda: not self.looks[-1].done(), "it looks again")
        if isinstance(told, Preview):
            self.looks[-1].set_result(told)
        else:
            self.looks[-1].set_exception(told)
        await until(pilot, lambda: what in self.says(where), what)

    def says(self, where: str) -> str:
        """What part *where* of the dialog says."""
        return text_of(self.app, f"#{where}")

    @property
    def title(self) -> object:
        """Of the dialog."""
        return self.app.screen.query_one(".dialog").border_title


@pytest.mark.parametrize("is_foretold", [False, True])
def test_yes_waits_for_the_forecast(monkeypatch: pytest.MonkeyPatch, is_foretold: bool) -> None:
    """Before the preview no key does the move; before the forecast only Y does, and the dialog says so."""
    pool = Pool(monkeypatch)

    async def script(pilot: "Pilot[None]") -> None:
        await pilot.press("y", "enter", "Y")
        assert pool.answers == [] and pool.says("choice") == "n or escape: leave it"
        await pool.tells(pilot, a_preview(554, "a line"), "choice", "Y: do it without the forecast")
        assert pool.title == "split 0x4? at 9:14.0" and "forecasting" in pool.says("forecast")
        await pilot.press("y", "enter")
        assert pool.answers == []
        if is_foretold:
            pool.forecasts[-1].set_result(Forecast(554 * SECOND, ("stay", "split")))
            await until(pilot, lambda: pool.says("forecast") == "stay\nsplit", "the forecast")
            assert pool.says("choice") == "y or enter: do it    n or escape: leave it    r: forecast anew"
        await pilot.press("y" if is_foretold else "Y")
        assert pool.answers == [True]

    pool.drive(script)


def test_a_preview_goes_on_with_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its numbers and its instant follow the run; a forecast says how far behind it is, and r asks anew."""
    pool = Pool(monkeypatch)

    async def script(pilot: "Pilot[None]") -> None:
        await pool.tells(pilot, a_preview(554, "3 queued"), "preview", "3 queued")
        pool.forecasts[-1].set_result(Forecast(554 * SECOND, ("stay", "split")))
        await pool.tells(pilot, a_preview(555, "5 queued"), "preview", "5 queued")
        assert pool.title == "split 0x4? at 9:15.0"
        await until(pilot, lambda: pool.says("forecast") == "stay\nsplit", "a second is no age")
        late = "stay\nsplit\n  as of 9:14.0: the run is 35.00 s further"
        await pool.tells(pilot, a_preview(589, "9 queued"), "forecast", late)
        await pilot.press("r")
        await until(pilot, lambda: "forecasting" in pool.says("forecast"), "anew")
        assert len(pool.forecasts) == 2 and "without the forecast" in pool.says("choice")
        pool.forecasts[-1].set_result(Forecast(589 * SECOND, ("stay", "split later")))
        await until(pilot, lambda: pool.says("forecast") == "stay\nsplit later", "the newer one")

    pool.drive(script)


def test_a_move_that_becomes_illegal_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another operator was faster: the dialog says so, and y closes it; legal again, it asks again."""
    pool = Pool(monkeypatch)
    refused = ConfigError("it is drained by bob; reopen it first")

    async def script(pilot: "Pilot[None]") -> None:
        await pool.tells(pilot, a_preview(554, "3 queued"), "preview", "3 queued")
        pool.forecasts[-1].set_exception(refused)
        await pool.tells(pilot, refused, "preview", "not possible:\nit is drained by bob")
        assert pool.says("choice") == "enter or escape: close" and pool.says("forecast") == ""
        await pool.tells(pilot, a_preview(560, "1 queued"), "preview", "1 queued")
        assert len(pool.forecasts) == 2 and "do it without the forecast" in pool.says("choice")
        await pool.tells(pilot, refused, "preview", "not possible")
        await pilot.press("y")
        assert pool.answers == [False]

    pool.drive(script)


def test_a_run_that_ends_under_the_question_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is asked any more, and yes is no wish."""
    pool = Pool(monkeypatch)

    async def script(pilot: "Pilot[None]") -> None:
        await pool.tells(pilot, a_preview(554, "3 queued"), "choice", "Y: do it without")
        pool.goes_on = False
        await until(pilot, lambda: "nothing can be changed any more" in pool.says("choice"), "over")
        await pilot.press("y")
        assert pool.answers == [False]

    pool.drive(script)
