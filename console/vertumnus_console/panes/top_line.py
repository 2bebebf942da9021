"""The first line: executed or simulated, live or replayed, who moves workers, which run, when."""

from textual.content import Content
from textual.widgets import Static

from vertumnus_console.desk import DeskState, Link
from vertumnus_console.player import Snapshot
from vertumnus_console.words import clock, cropped

NAME_WIDTH = 18
QUIET_S = 5.0
"""From which on it is told that nothing comes from a run: it may be stopped, or have nothing to do [s]."""


class TopLine(Static):
    """Says what is looked at, on every screen."""

    def __init__(self, execution: str, name: str, run_id: str) -> None:
        super().__init__(id="top")
        self._execution = execution.upper()
        self._run = f"{cropped(name, NAME_WIDTH)} …{run_id[-6:]}"

    def on_mount(self) -> None:
        """Say that the log is being read."""
        self.update(Content.assemble((self._execution, "bold"), "  reading the log  ", (self._run, "bold")))

    def show(self, snapshot: Snapshot, desk: DeskState) -> None:
        """Draw the state of *snapshot* and of the connection."""
        now, end = snapshot.view.now_ns, snapshot.end_ns
        when = clock(now) if end is None or end <= now else f"{clock(now)} of {clock(end)}"
        parts = [
            Content.styled(self._execution, "bold"),
            Content(mode(snapshot)),
            Content.styled(snapshot.view.mode.upper(), "bold $text-accent"),
            Content.styled(self._run, "bold"),
            Content(when),
            _link(snapshot, desk),
        ]
        content = Content("  ").join([part for part in parts if part.plain])
        if not (isinstance(self.content, Content) and content.is_same(self.content)):
            self.update(content)


def mode(snapshot: Snapshot) -> str:
    """Return how the run is shown."""
    if snapshot.is_live and snapshot.follows and snapshot.end_ns is None:
        return f"LIVE, reading the log {snapshot.progress:.0%}"
    if snapshot.is_live and snapshot.follows:
        told = "LIVE" + ("" if snapshot.view.speed is None else pace(snapshot.view.speed))
        is_quiet = snapshot.quiet_s >= QUIET_S and snapshot.view.speed != 0.0
        return f"{told}, quiet {snapshot.quiet_s:.0f} s" if is_quiet else told
    kind = "live run" if snapshot.is_live else "replay"
    if snapshot.is_playing:
        return f"{kind} at {snapshot.speed:g}x"
    if snapshot.is_seeking:
        return f"{kind}, {'reading' if snapshot.follows else 'seeking'} {snapshot.progress:.0%}"
    return f"{kind}, end" if snapshot.follows else f"{kind}, PAUSED"


def pace(speed: float) -> str:
    """Return how fast a paced run goes."""
    return f" {speed:g}x" if speed else " HELD"


def _link(snapshot: Snapshot, desk: DeskState) -> Content:
    if not snapshot.is_live:
        return Content(snapshot.status)
    if desk.link is Link.LOST:
        return Content.styled(f"{desk.link}", "bold $text-error")
    if desk.link is Link.READ_ONLY:
        return Content.styled("READ-ONLY", "bold")
    return Content.styled(desk.problem, "bold $text-error")
