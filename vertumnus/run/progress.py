"""How far a run is: a bar with the time left on a terminal, a line now and then elsewhere."""

from collections.abc import Callable
from time import monotonic
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from vertumnus.domain.units import Nanoseconds, to_seconds

QUIET_S = 2.0
"""Nothing is shown before this [s]."""
LINE_S = 15.0
"""Distance of the lines where there is no terminal [s]."""


class Progress:
    """Counts ended requests, or other units, on stderr."""

    def __init__(
        self,
        console: Console,
        what: str,
        total: int,
        units: str = "requests",
        tell: Callable[[int, int], None] | None = None,
    ) -> None:
        """Show progress on *console*, or let *tell* (done, total) do it."""
        self._console = console
        self._what = what
        self._total = total
        self._units = units
        self._tell = tell
        self._done = 0
        self._started = monotonic()
        self._next_line = self._started + LINE_S
        self._next_look = self._started + QUIET_S
        self._bar: Bar | None = None

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._draw()
            self._bar.stop()

    def show(self, done: int) -> None:
        """Tell that *done* of them have ended; cheap enough for every one of them."""
        self._done = done
        now = monotonic()
        if now >= self._next_look and done:
            self._next_look = now + 0.1
            self._update(now)

    def quiet(self, at_ns: Nanoseconds) -> None:
        """Tell now and then that the run's clock is at *at_ns*: to be called while nothing ends."""
        now = monotonic()
        if self._tell is None and now >= self._next_line:
            self._next_line = now + LINE_S
            self._console.print(
                f"{self._what}: {self._done} of {self._total} {self._units}, at {to_seconds(at_ns):,.0f} s "
                "of the run's clock"
            )

    def _update(self, now: float) -> None:
        if self._tell is not None:
            self._tell(self._done, self._total)
        elif self._console.is_terminal:
            self._draw()
        elif now >= self._next_line:
            self._next_line = now + LINE_S
            left = (now - self._started) * (self._total - self._done) / self._done
            self._console.print(
                f"{self._what}: {self._done} of {self._total} {self._units}, about {left:.0f} s left"
            )

    def _draw(self) -> None:
        if self._bar is None:
            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
            )
            self._bar = Bar(*columns, console=self._console, transient=True)
            self._bar.add_task(self._what, total=self._total)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], completed=self._done)
