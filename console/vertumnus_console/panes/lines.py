"""The lines around a screen: which screens there are, what the keys do; both take clicks."""

from collections.abc import Iterable, Mapping

from textual.content import Content
from textual.style import Style
from textual.widgets import Static

from vertumnus_console.keys import Key, of_kind


class _Keys(Static):
    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.auto_links = False  # a key is clickable, but not written as a link is


class TabLine(_Keys):
    """The screens by their keys; the one in front stands out."""

    def show(self, current: str, keys_of: Mapping[str, str]) -> None:
        """Draw the screens' keys."""
        parts = [
            clickable(key, keys_of, "reverse" if key.name == current else "") for key in of_kind("screen")
        ]
        self.update(Content(" ").join(parts))


class KeyLine(_Keys):
    """What the keys do now, in as many lines as that takes."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._parts: list[Content] = []

    def show(self, keys: Iterable[Key], keys_of: Mapping[str, str]) -> None:
        """Draw *keys*."""
        parts = [clickable(key, keys_of, "") for key in keys]
        if parts != self._parts:
            self._parts = parts
            self._wrap()

    def on_resize(self) -> None:
        """Break the lines anew."""
        self._wrap()

    def _wrap(self) -> None:
        width = max(20, self.content_size.width or self.app.size.width - 2)
        lines: list[list[Content]] = [[]]
        for part in self._parts:
            if lines[-1] and sum(len(each) + 2 for each in lines[-1]) + len(part) > width:
                lines.append([])
            lines[-1].append(part)
        self.update(Content("\n").join([Content("  ").join(line) for line in lines]))


def clickable(key: Key, keys_of: Mapping[str, str], style: str) -> Content:
    """Return a key with its label; a click does what the key does."""
    shown = key.written(keys_of.get(key.name), in_line=True)
    content = Content.assemble(
        (shown, f"bold {style or '$text-accent'}"), (f" {key.label}", style or "$foreground")
    )
    action = key.action if "." in key.action else f"screen.{key.action}"
    return content.stylize(Style.from_meta({"@click": action}))
