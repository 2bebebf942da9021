"""The first line: executed or simulated, live or replayed, which run, when."""

from textual.content import Content
from textual.widgets import Static

from vertumnus_console.player import Snapshot
from vertumnus_console.words import clock, cropped

NAME_WIDTH = 18


class TopLine(Static):
    """Says what is looked at, on every screen."""

    def __init__(self, execution: str, name: str, run_id: str, speed: float) -> None:
        super().__init__(id="top")
        self._execution = execution.upper()
        self._run = f"{cropped(name, NAME_WIDTH)} …{run_id[-6:]}"
        self._speed = speed

    def on_mount(self) -> None:
        """Say that the log is being read."""
        self.update(self._line("reading the log", ""))

    def show(self, snapshot: Snapshot) -> None:
        """Draw the state of *snapshot*."""
        now, end = snapshot.view.now_ns, snapshot.end_ns
        when = clock(now) if end is None or end <= now else f"{clock(now)} of {clock(end)}"
        self.update(self._line(mode(snapshot, self._speed), f"{when}  {snapshot.status}"))

    def _line(self, mode: str, when: str) -> Content:
        return Content.assemble((self._execution, "bold"), f"  {mode}  ", (self._run, "bold"), f"  {when}")


def mode(snapshot: Snapshot, speed: float) -> str:
    """Return how the run is shown."""
    if snapshot.is_live and snapshot.follows:
        return "LIVE"
    kind = "live run" if snapshot.is_live else "replay"
    if snapshot.is_playing:
        return f"{kind} at {speed:g}x"
    if snapshot.is_seeking:
        return f"{kind}, reading" if snapshot.progress is None else f"{kind}, seeking {snapshot.progress:.0%}"
    return f"{kind}, end" if snapshot.follows else f"{kind}, paused"
