"""The Textual application: one screen on one feed, its palette, its keys."""

from collections.abc import Iterable, Mapping

from textual.app import App, SystemCommand
from textual.screen import Screen

from vertumnus_console.acting import OperatorScreen
from vertumnus_console.feed import Feed
from vertumnus_console.keys import KEYS
from vertumnus_console.screen import Shown


class ConsoleApp(App[None]):
    """``vertumnus console``."""

    TITLE = "vertumnus console"
    CSS_PATH = "console.tcss"

    def __init__(self, feed: Feed, shown: Shown, keymap: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self._feed = feed
        self._shown = shown
        self._keys = dict(keymap or {})
        """A user's own keys by the name of what they do."""

    def get_default_screen(self) -> Screen[None]:
        """Return the screen of the run."""
        return OperatorScreen(self._feed, self._shown, self._keys)

    def on_mount(self) -> None:
        """Start to read."""
        self.set_keymap(self._keys)
        self._feed.start()

    def on_unmount(self) -> None:
        """Let the log go."""
        self._feed.stop()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Yield everything that a key does, by name, for the palette."""
        if not isinstance(screen, OperatorScreen):
            return
        for key in KEYS:
            name = key.action.split("(")[0].removeprefix("app.")
            if screen.check_action(name, ()):
                action = key.action if "." in key.action else f"screen.{key.action}"
                yield SystemCommand(key.name, key.help, lambda action=action: self.run_action(action))

    def action_turn_theme(self) -> None:
        """Change between dark and light."""
        self.theme = "textual-light" if self.current_theme.dark else "textual-dark"
