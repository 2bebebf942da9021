"""The screen of one run: what is shown, how one moves through it. `acting` adds what changes the run."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from time import monotonic
from typing import ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import ContentSwitcher, Static

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import VertumnusError
from vertumnus.domain.units import Nanoseconds, to_seconds
from vertumnus.records.faults import LOSSES
from vertumnus.records.run_dir import RunDir
from vertumnus_console.desk import DeskState
from vertumnus_console.dialogs.help import help_screen
from vertumnus_console.dialogs.text import TextScreen
from vertumnus_console.feed import LOOK_S, Feed
from vertumnus_console.folds import Choice
from vertumnus_console.hindsight import hindsight
from vertumnus_console.keys import KEYS, Key
from vertumnus_console.looks.trie import PrefixUse, prefix_use
from vertumnus_console.looks.worker import worker_lines
from vertumnus_console.panes import choices, trie
from vertumnus_console.panes.choices import ChoicesPane
from vertumnus_console.panes.cluster import ClusterPane
from vertumnus_console.panes.events import EventsPane
from vertumnus_console.panes.lines import KeyLine, TabLine
from vertumnus_console.panes.log import LogPane
from vertumnus_console.panes.model import ModelPane
from vertumnus_console.panes.queues import QueuesPane
from vertumnus_console.panes.table import Table
from vertumnus_console.panes.top_line import TopLine
from vertumnus_console.panes.trie import TriePane
from vertumnus_console.panes.workers import WorkersPane
from vertumnus_console.player import GONE, Look, Player, Snapshot
from vertumnus_console.shown import Shown
from vertumnus_console.view import WorkerView
from vertumnus_console.words import clock, duration

_T = TypeVar("_T")

MESSAGE_S = 12.0
"""How long a message stays [s]."""

Pane = ClusterPane | WorkersPane | QueuesPane | TriePane | ChoicesPane | EventsPane | ModelPane | LogPane


class RunScreen(Screen[None]):
    """One run: the first lines, one of the panes, a message, the keys."""

    BINDINGS: ClassVar[list[BindingType]] = [key.binding() for key in KEYS]

    def __init__(self, feed: Feed, shown: Shown, keymap: Mapping[str, str]) -> None:
        """Show *shown* as *feed* has it; *keymap* holds a user's own keys by name."""
        super().__init__()
        self.feed = feed
        self.shown = shown
        self.drawn: Snapshot | None = None
        """What is on the screen."""
        self.keys_of = keymap
        """A user's own keys by the name of what they do."""
        self._failure: str | None = None
        """Why the replay stopped, once that was said."""
        self._hush: Timer | None = None
        self._waiting: list[tuple[Future[object], Callable[[object], None]]] = []

    def compose(self) -> ComposeResult:
        yield TopLine(self.shown.execution, self.shown.name, self.shown.run_id)
        yield TabLine(id="tabs")
        with ContentSwitcher(initial="overview"):
            yield ClusterPane(self.shown.header.lattice, id="overview")
            yield WorkersPane(id="workers")
            yield QueuesPane(id="queues")
            yield TriePane(id="trie")
            yield ChoicesPane(id="choices")
            yield EventsPane(id="events")
            yield ModelPane(id="model")
            yield LogPane(id="log")
        yield Static(id="message", markup=False)
        yield KeyLine(id="keys")

    def on_mount(self) -> None:
        """Look at the feed from now on."""
        self.query_one(TabLine).show("overview", self.keys_of)
        self.query_one(KeyLine).show(self.offered(), self.keys_of)
        self.set_interval(LOOK_S, self.draw)

    # ---- drawing --------------------------------------------------------------------------------

    @property
    def desk(self) -> DeskState:
        """How the console stands to the run."""
        return self.feed.desk

    @property
    def pane(self) -> Pane:
        """The pane in front."""
        pane = self.query_one(ContentSwitcher).visible_content
        assert isinstance(pane, Pane)
        return pane

    @property
    def is_settled(self) -> bool:
        """Whether all is drawn that was asked for, and the replay is where it was sent."""
        drawn = self.drawn
        if drawn is None or drawn is not self.feed.latest or drawn.is_seeking or self._waiting:
            return False
        look: Look | None = getattr(self.pane, "LOOK", None)
        return look is None or (drawn.looked is not None and drawn.looked.name == look.name)

    @property
    def selected(self) -> CpGroup | None:
        """The worker that actions are for."""
        pane = self.pane
        return pane.pointed if isinstance(pane, WorkersPane) else self.query_one(ClusterPane).selected

    def offered(self) -> list[Key]:
        """Return the keys of the key line."""
        return [key for key in KEYS if key.kind != "screen" and key.in_line]

    def draw(self) -> None:
        """Draw the newest snapshot unless it is drawn already, and what was asked for since."""
        snapshot = self.feed.latest
        self._settle()
        self._tell_failure()
        if snapshot is None or snapshot is self.drawn:
            return
        before, self.drawn = self.drawn, snapshot
        self.query_one(TopLine).show(snapshot, self.desk)
        self.query_one(KeyLine).show(self.offered(), self.keys_of)
        self.pane.show(snapshot)
        self.told(before, snapshot)

    def told(self, before: Snapshot | None, now: Snapshot) -> None:
        """Say what happened between two snapshots."""
        if before is not None and before.follows and now.follows:
            since = before.view.now_ns
            lost = [event for event in now.view.events if event.kind in LOSSES and event.t_ns > since]
            if lost:
                self.say(f"lost: {lost[0].text}", "error")
        if before is not None and before.is_live and not now.is_live:
            end = "its log was deleted" if now.status == GONE else f"the run has ended: {now.status}"
            self.say(f"{end}; the console goes on as a replay, q leaves it")

    def say(self, text: str, severity: str = "") -> None:
        """Show *text* above the keys for a while, or until something else is said."""
        line = self.query_one("#message", Static)
        line.set_class(severity == "error", "error")
        line.update(Content(text))
        line.display = bool(text)
        if self._hush is not None:
            self._hush.stop()
        self._hush = self.set_timer(MESSAGE_S, self._say_nothing) if text else None

    def _tell_failure(self) -> None:
        """Say why the replay stopped: once at once, and then whenever nothing else is said."""
        failure = self.feed.failure
        if failure is None or (failure == self._failure and self.query_one("#message", Static).display):
            return
        self._failure = failure
        self.say(f"the replay stopped here: {failure}; vertumnus audit looks at the log", "error")

    def _say_nothing(self) -> None:
        self.say("")

    def ask(self, what: Callable[[Player], _T], then: Callable[[_T], None]) -> None:
        """Have *what* looked up in the replay, and *then* done with it on the screen."""
        self._waiting.append((self.feed.answer(what), then))  # type: ignore[arg-type]

    def _settle(self) -> None:
        settled = [each for each in self._waiting if each[0].done()]
        self._waiting = [each for each in self._waiting if not each[0].done()]
        for future, then in settled:
            error = future.exception()
            if isinstance(error, VertumnusError):
                self.say(str(error), "error")
            else:
                then(future.result())

    # ---- moving through the run -----------------------------------------------------------------

    def action_pane(self, name: str) -> None:
        """Show pane *name*, made of what is known until the next snapshot has its look."""
        selected = self.selected
        self.query_one(ContentSwitcher).current = name
        pane = self.pane
        look = getattr(pane, "LOOK", None)
        self.feed.ask(lambda player: player.look(look))
        self.query_one(TabLine).show(name, self.keys_of)
        self.query_one(KeyLine).show(self.offered(), self.keys_of)
        self.say("")
        if self.drawn is not None:
            pane.show(self.drawn)
        if isinstance(pane, WorkersPane):
            pane.point(selected)
        elif isinstance(pane, ClusterPane):
            self.select(selected)
        pane.focus()

    def action_select(self, step: int) -> None:
        """Select the worker before or after, or move the cursor of a table."""
        pane = self.pane
        if isinstance(pane, ClusterPane) and self.drawn is not None:
            groups = [worker.group for worker in self.drawn.view.workers]
            place = groups.index(pane.selected) + step if pane.selected in groups else 0
            self.select(groups[place % len(groups)])
        elif isinstance(pane, Table):
            pane.move_cursor(pane.cursor_row + step)
        else:
            pane.scroll_relative(y=step, animate=False)

    def action_busiest(self) -> None:
        """Select the worker with the most predicted work."""
        if self.drawn is None:
            return
        busiest = max(self.drawn.view.workers, key=_work)
        self.select(busiest.group)
        if isinstance(self.pane, WorkersPane):
            self.pane.point(busiest.group)
        self.say(f"{_superlative(busiest, self.drawn.view.now_ns)}; enter shows why")

    def action_closer(self) -> None:
        """Look closely at what is selected."""
        pane, group = self.pane, self.selected
        if isinstance(pane, ChoicesPane) and pane.pointed is not None:
            self._explain(pane.pointed)
        elif isinstance(pane, TriePane) and (key := pane.pointed) is not None:
            self.ask(lambda player: prefix_use(player.replay, key), self._show_prefix)
        elif isinstance(pane, ClusterPane | WorkersPane) and group is not None:
            self._look_at(group)
        else:
            self.say("nothing is selected: up and down select a worker, b the busiest")

    def action_seek(self, steps: int) -> None:
        """Go *steps* seek steps on or back."""
        self.feed.ask(lambda player: player.seek(steps))

    def action_start(self) -> None:
        """Go to the run's start."""
        self.feed.ask(lambda player: player.go_to_start())

    def action_end(self) -> None:
        """Go to the run's end and follow it."""
        self.feed.ask(lambda player: player.go_to_end())

    def action_play(self) -> None:
        """Play or pause."""
        self.feed.ask(lambda player: player.toggle(monotonic()))

    def action_help(self) -> None:
        """Open the help."""
        self.app.push_screen(help_screen(str(self.pane.id), self.keys_of, KEYS))

    def select(self, group: CpGroup | None) -> None:
        """Let the keys act on *group*."""
        overview = self.query_one(ClusterPane)
        overview.selected = group
        if self.drawn is not None:
            overview.show(self.drawn)

    def _explain(self, choice: Choice) -> None:
        def show(run: RunDir) -> None:
            later = hindsight(run, choice.decision)
            self.app.push_screen(TextScreen("why this worker", choices.told(choice), later))

        self.ask(lambda player: player.run, show)

    def _look_at(self, group: CpGroup) -> None:
        def show(lines: list[str]) -> None:
            self.app.push_screen(TextScreen(f"worker {group}", Content("\n".join(lines))))

        self.ask(lambda player: worker_lines(player.replay, group, player.replay.now_ns or 0), show)

    def _show_prefix(self, use: PrefixUse | None) -> None:
        if use is None:
            self.say("that prefix is gone: nobody holds it any more, and nobody wants it")
        else:
            self.app.push_screen(TextScreen("prefix", trie.told(use)))


def _work(worker: WorkerView) -> tuple[int, float, int]:
    return worker.queue_ns, worker.busy, -worker.group.first_rank


def _superlative(busiest: WorkerView, now: Nanoseconds) -> str:
    """Say what *busiest* is at *now*: the line stays while the run goes on."""
    at, worker = clock(now), f"worker {busiest.group}"
    if busiest.queue_ns:
        work = duration(to_seconds(busiest.queue_ns))
        return f"{at}: {worker} has the most work, {work}, busy {busiest.busy:.0%} of the last minute"
    return f"{at}: nobody has work; {worker} was the busiest of the last minute ({busiest.busy:.0%})"
