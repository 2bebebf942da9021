"""The Textual application: a screen on the feed of one run or of two, its palette, its keys."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from textual.app import App, SystemCommand
from textual.screen import Screen

from vertumnus_console.acting import OperatorScreen
from vertumnus_console.comparing import COMPARED, CompareScreen
from vertumnus_console.feed import Feed
from vertumnus_console.keys import KEYS, Key
from vertumnus_console.terminal import TerminalDriver

DARK, LIGHT = "textual-dark", "textual-light"
"""Themes."""


class ConsoleApp(App[None]):
    """``vertumnus console``."""

    TITLE = "vertumnus console"
    CSS_PATH = "console.tcss"

    def __init__(
        self,
        feeds: Sequence[Feed],
        first_screen: Callable[[], Screen[None]],
        keymap: Mapping[str, str],
        *,
        is_light: bool = False,
    ) -> None:
        """Show *first_screen*, which looks at *feeds*; *keymap* holds a user's own keys by name."""
        super().__init__(driver_class=TerminalDriver)
        if is_light:
            self.theme = LIGHT
        self._feeds = feeds
        self._first_screen = first_screen
        self._keys = dict(keymap)

    def get_default_screen(self) -> Screen[None]:
        """Return the screen of the run, or of the two."""
        return self._first_screen()

    def on_mount(self) -> None:
        """Start to read."""
        self.set_keymap(self._keys)
        for feed in self._feeds:
            feed.start()

    def on_unmount(self) -> None:
        """Let the logs go."""
        for feed in self._feeds:
            feed.stop()

    def let_go(self) -> None:
        """Close the logs of an application that is not going to run."""
        for feed in self._feeds:
            feed.let_go()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Yield everything that a key does, by name, for the palette."""
        for key in _keys_of(screen):
            name = key.action.split("(")[0].removeprefix("app.")
            if screen.check_action(name, ()):
                action = key.action if "." in key.action else f"screen.{key.action}"
                yield SystemCommand(key.name, key.help, lambda action=action: self.run_action(action))

    def action_turn_theme(self) -> None:
        """Change between dark and light."""
        self.theme = LIGHT if self.current_theme.dark else DARK


def _keys_of(screen: Screen[object]) -> Sequence[Key]:
    if isinstance(screen, CompareScreen):
        return COMPARED
    return KEYS if isinstance(screen, OperatorScreen) else ()
