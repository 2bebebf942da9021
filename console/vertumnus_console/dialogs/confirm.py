"""Asks before a worker is split or merged, with what it would do.

While the run goes on under the question, what is known at once is looked at again every second, legality
included: another operator may have been faster. A forecast takes a second of a core, so it stays until
``r``, and says how far the run has gone since. What a move leads to is a part of the question: yes waits for
the forecast, and ``Y`` is for who cannot.
"""

from collections.abc import Callable
from concurrent.futures import Future
from time import monotonic
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from vertumnus.domain.errors import ConfigError
from vertumnus.domain.units import SECOND, Nanoseconds, to_seconds
from vertumnus.forecast.question import Question
from vertumnus_console.preview import Forecast, Preview, forecasting
from vertumnus_console.words import clock, duration

ASKED = "y or enter: do it    n or escape: leave it"
ASKED_EARLY = "Y: do it without the forecast    n or escape: leave it"
AGAIN = "    r: forecast anew"
LOOKED_AT = "enter or escape: close; the run is over, nothing can be changed any more"
NOT_POSSIBLE = "enter or escape: close"
LOOK_S = 0.1
"""Between two looks whether what was asked for is there [s]."""
AGAIN_S = 1.0
"""Between two previews of a run that goes on [s]."""
OLD_NS: Nanoseconds = 2 * SECOND
"""A forecast this far behind the preview says so: twice what lies between two previews at the run's pace."""


class Matter(NamedTuple):
    """The move that is asked about."""

    title: str
    look: Callable[[], "Future[Preview]"]
    """Ask the pool, as it is then, what is known at once."""
    question: Callable[[], "Future[Question]"]
    """Ask it for what a forecast is made of."""
    is_asked: Callable[[], bool]
    """Whether there still is a run to answer to; of one that is over, the move is only looked at."""


class ConfirmMove(ModalScreen[bool]):
    """Shows the preview of a move; True when the operator wants it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,enter", "answer(True)", "Do it"),
        Binding("Y", "answer_early", "Do it without the forecast"),
        Binding("n,escape,q", "answer(False)", "Leave it"),
        Binding("r", "forecast", "Forecast anew"),
    ]

    def __init__(self, matter: Matter) -> None:
        super().__init__()
        self._matter = matter
        self._looking: Future[Preview] | None = None
        self._next_look = 0.0
        self._preview: Preview | None = None
        """The newest; None before the first, and where the move is not legal (any more)."""
        self._is_known = False
        """Whether the pool has answered at all."""
        self._forecasting: Future[Forecast] | None = None
        self._forecast: Forecast | str = ""
        """The newest, or why there is none."""

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog") as box:
            box.border_title = self._matter.title
            yield Static("asking the pool ...", id="preview", markup=False)
            yield Static("", id="forecast", markup=False)
            yield Static("n or escape: leave it", id="choice", markup=False)

    def on_mount(self) -> None:
        """Ask the pool, and go on to while the run does."""
        self._looking = self._matter.look()
        self._next_look = monotonic() + AGAIN_S
        self.action_forecast()
        self.set_interval(LOOK_S, self._look)
        self._look()

    @property
    def is_settled(self) -> bool:
        """Whether everything that was asked for is shown."""
        return self._is_known and self._looking is None and (not self._preview or self._forecasting is None)

    def action_answer(self, wanted: bool) -> None:
        """Close; a move that is not legal is never wanted, and one must have been looked at, forecast too."""
        if not wanted or (self._is_known and not self._is_early):
            self.dismiss(wanted and self._preview is not None and self._matter.is_asked())

    def action_answer_early(self) -> None:
        """Close with yes though the forecast is not there; where it is, this is a yes like any other."""
        if self._preview is not None:
            self.dismiss(self._matter.is_asked())

    @property
    def _is_early(self) -> bool:
        """Whether a move could be made whose forecast is not there yet."""
        return self._preview is not None and self._matter.is_asked() and self._forecasting is not None

    def action_forecast(self) -> None:
        """Forecast from where the run is now, unless that is under way."""
        if self._forecasting is None:
            self._forecast = ""
            self._forecasting = forecasting(self._matter.question())

    def _look(self) -> None:
        if self._looking is not None and self._looking.done():
            self._show(self._looking)
            self._looking = None
        elif self._looking is None and self._matter.is_asked() and monotonic() >= self._next_look:
            self._next_look = monotonic() + AGAIN_S
            self._looking = self._matter.look()
        if self._forecasting is not None and self._forecasting.done():
            error = self._forecasting.exception()
            self._forecast = f"no forecast: {error}" if error is not None else self._forecasting.result()
            self._forecasting = None
        self._tell("forecast", *self._foretold())
        self._tell("choice", self._choice())

    def _show(self, looked: "Future[Preview]") -> None:
        error = looked.exception()
        if error is None and self._is_known and self._preview is None:
            self.action_forecast()  # it is legal by now
        self._is_known = True
        self._preview = looked.result() if error is None else None
        if self._preview is not None:
            self.query_one(".dialog").border_title = f"{self._matter.title} at {clock(self._preview.at_ns)}"
            self._tell("preview", *self._preview.lines)
        else:
            lines = error.problems if isinstance(error, ConfigError) else (str(error),)
            self._tell("preview", "not possible:", *lines)

    def _foretold(self) -> tuple[str, ...]:
        told, preview = self._forecast, self._preview
        if preview is None:
            return ()
        if isinstance(told, str):
            return (told or "next minute  forecasting, which takes a moment ...",)
        age = preview.at_ns - told.at_ns
        if age < OLD_NS:
            return told.lines
        return (*told.lines, f"  as of {clock(told.at_ns)}: the run is {duration(to_seconds(age))} further")

    def _choice(self) -> str:
        if not self._is_known:
            return "n or escape: leave it"
        if not self._matter.is_asked():
            return LOOKED_AT
        if self._preview is None:
            return NOT_POSSIBLE
        return ASKED_EARLY if self._is_early else ASKED + AGAIN

    def _tell(self, part: str, *lines: str) -> None:
        static, content = self.query_one(f"#{part}", Static), Content("\n".join(lines))
        if static.content != content:
            static.update(content)
