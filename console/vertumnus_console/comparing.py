"""The screen of two runs side by side, in step; it watches and changes nothing."""

from collections.abc import Mapping
from time import monotonic
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from vertumnus_console.dialogs.help import help_screen
from vertumnus_console.feed import INTERVAL_S
from vertumnus_console.keys import KEYS
from vertumnus_console.pair import Both, Pair
from vertumnus_console.panes.lines import KeyLine
from vertumnus_console.panes.sides import SidesPane
from vertumnus_console.saving import saved
from vertumnus_console.shown import Shown
from vertumnus_console.words import clock

NAMES = ("faster", "slower", "pause", "back", "on", "start", "end", "save", "theme", "help", "quit")
"""The keys that mean something here."""
COMPARED = tuple(key for key in KEYS if key.name in NAMES)


class CompareScreen(Screen[None]):
    """Two runs, a line about both, the keys."""

    BINDINGS: ClassVar[list[BindingType]] = [key.binding() for key in COMPARED]

    def __init__(self, pair: Pair, first: Shown, second: Shown, keymap: Mapping[str, str]) -> None:
        super().__init__()
        self._pair = pair
        self._shown = first, second
        self._keys_of = keymap
        self.drawn: Both | None = None
        """What is on the screen."""

    def compose(self) -> ComposeResult:
        yield Static("reading both logs", id="top", markup=False)
        yield SidesPane(*self._shown, id="pair")
        yield Static(id="message", markup=False)
        yield KeyLine(id="keys")

    def on_mount(self) -> None:
        """Look at the feeds from now on."""
        self.query_one(KeyLine).show([key for key in COMPARED if key.in_line], self._keys_of)
        self.set_interval(INTERVAL_S, self.draw)

    @property
    def is_settled(self) -> bool:
        """Whether both are where they were sent, and drawn."""
        return self.drawn is not None and not any(each.is_seeking for each in self.drawn)

    def draw(self) -> None:
        """Draw the newest snapshots unless they are drawn already, and keep the runs in step."""
        both = self._pair.both
        for mark, feed in zip("AB", self._pair.feeds, strict=True):
            if feed.failure is not None:
                self._say(f"the replay of {mark} stopped here: {feed.failure}")
        if both is None or both == self.drawn:
            return
        self.drawn = both
        self._pair.keep_step(both)
        self.query_one("#top", Static).update(Content(self._when(both)))
        self.query_one(SidesPane).show(both)

    def action_seek(self, steps: int) -> None:
        """Go *steps* seek steps on or back."""
        if self.drawn is not None:
            self._pair.seek(self.drawn, steps)

    def action_start(self) -> None:
        """Go to the start."""
        self._pair.go_to(0)

    def action_end(self) -> None:
        """Go to the end and follow it."""
        self._pair.go_to_end()

    def action_play(self) -> None:
        """Play or pause."""
        if self.drawn is not None:
            self._pair.toggle(self.drawn, monotonic())

    def action_speed(self, factor: float) -> None:
        """Play *factor* times as fast."""
        if self.drawn is not None:
            self._pair.set_speed(self.drawn, self._pair.speed * factor, monotonic())
            self._say(f"replays play at {self._pair.speed:g}x now")

    def action_save(self) -> None:
        """Write what is seen to files beside each other."""
        self._say(saved(self.app, self._shown[0].run_id).text)

    def action_help(self) -> None:
        """Open the help."""
        self.app.push_screen(help_screen("compare", self._keys_of, COMPARED))

    def _when(self, both: Both) -> str:
        now, end = both.now_ns, both.end_ns
        when = clock(now) if end is None or end <= now else f"{clock(now)} of {clock(end)}"
        if both.is_playing:
            how = f"playing at {self._pair.speed:g}x"
        elif self._pair.follows:
            how = "at the end" if both.live_ns is None else "following the live run"
        else:
            how = "paused"
        return f"A and B in step, {how}  {when}"

    def _say(self, text: str) -> None:
        line = self.query_one("#message", Static)
        line.update(Content(text))
        line.display = bool(text)
