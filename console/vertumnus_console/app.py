"""The Textual application: it draws the feed's newest snapshot and passes keys on."""

from time import monotonic
from typing import ClassVar, NamedTuple

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widgets import ContentSwitcher, Footer, Static

from vertumnus.records.log import LogHeader
from vertumnus_console.feed import INTERVAL_S, Feed
from vertumnus_console.panes.cluster import ClusterPane
from vertumnus_console.panes.events import EventsPane
from vertumnus_console.panes.help import HelpScreen
from vertumnus_console.panes.top_line import TopLine
from vertumnus_console.panes.workers import WorkersPane
from vertumnus_console.player import Snapshot


class Shown(NamedTuple):
    """The run that a console shows."""

    run_id: str
    name: str
    """Of its experiment."""
    header: LogHeader
    speed: float
    """Run's seconds per second of playing."""

    @property
    def execution(self) -> str:
        """Whether the prefills are computed or only timed."""
        return "simulated" if self.header.backend == "sim" else "executed"


class RunScreen(Screen[None]):
    """One run: the first line, one of the panes, the keys."""

    # priority: tables and scroll bars take these keys for themselves
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "pane('overview')", "Overview"),
        Binding("w", "pane('workers')", "Workers"),
        Binding("e", "pane('events')", "Events"),
        Binding("space", "play", "Play", priority=True),
        Binding("left", "seek(-1)", "Back", key_display="←", show=False, priority=True),
        Binding("right", "seek(1)", "Seek", key_display="←/→", priority=True),
        Binding("home", "start", "Start", show=False, priority=True),
        Binding("end", "end", "Jump", key_display="home/end", priority=True),
    ]

    def __init__(self, feed: Feed, shown: Shown) -> None:
        super().__init__()
        self._feed = feed
        self._shown = shown
        self._drawn: Snapshot | None = None

    def compose(self) -> ComposeResult:
        shown = self._shown
        yield TopLine(shown.execution, shown.name, shown.run_id, shown.speed)
        yield Static(id="notice")
        with ContentSwitcher(initial="overview"):
            yield ClusterPane(shown.header.lattice, id="overview")
            yield WorkersPane(id="workers")
            yield EventsPane(id="events")
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        """Look at the feed from now on."""
        self.set_interval(INTERVAL_S, self.draw)

    def draw(self) -> None:
        """Draw the newest snapshot unless it is drawn already."""
        snapshot = self._feed.latest
        if snapshot is not None and snapshot is not self._drawn:
            self._drawn = snapshot
            self.query_one(TopLine).show(snapshot)
            self._draw_pane(snapshot)
        notice = self.query_one("#notice", Static)
        if self._feed.failure is not None and not notice.display:
            notice.update(Content(f"the replay stopped here: {self._feed.failure}"))
            notice.display = True

    def action_pane(self, pane: str) -> None:
        """Show *pane*."""
        self.query_one(ContentSwitcher).current = pane
        self.query_one(f"#{pane}").focus()
        if self._drawn is not None:
            self._draw_pane(self._drawn)

    def action_seek(self, steps: int) -> None:
        """Go *steps* seek steps on or back."""
        self._feed.ask(lambda player: player.seek(steps))

    def action_start(self) -> None:
        """Go to the run's start."""
        self._feed.ask(lambda player: player.go_to_start())

    def action_end(self) -> None:
        """Go to the run's end and follow it."""
        self._feed.ask(lambda player: player.go_to_end())

    def action_play(self) -> None:
        """Play or pause."""
        self._feed.ask(lambda player: player.toggle(monotonic()))

    def _draw_pane(self, snapshot: Snapshot) -> None:
        match self.query_one(ContentSwitcher).visible_content:  # what is hidden costs nothing
            case ClusterPane() | WorkersPane() | EventsPane() as pane:
                pane.show(snapshot.view)


class ConsoleApp(App[None]):
    """``vertumnus console``."""

    TITLE = "vertumnus console"
    CSS_PATH = "console.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("d", "turn_theme", "Dark/light", show=False),
        Binding("question_mark", "help", "Help", key_display="?"),
        Binding("q", "quit", "Quit"),
    ]

    def __init__(self, feed: Feed, shown: Shown) -> None:
        super().__init__()
        self._feed = feed
        self._shown = shown

    def get_default_screen(self) -> Screen[None]:
        """Return the screen of the run."""
        return RunScreen(self._feed, self._shown)

    def on_mount(self) -> None:
        """Start to read."""
        self._feed.start()

    def on_unmount(self) -> None:
        """Let the log go."""
        self._feed.stop()

    def action_turn_theme(self) -> None:
        """Change between dark and light."""
        self.theme = "textual-light" if self.current_theme.dark else "textual-dark"

    def action_help(self) -> None:
        """Open the help."""
        self.push_screen(HelpScreen())
