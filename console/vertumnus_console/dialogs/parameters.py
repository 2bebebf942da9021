"""The parameters that can be changed while a run goes: pick one, write its value."""

from math import isfinite
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from vertumnus.policy.tuning import Value


class Setting(NamedTuple):
    """A parameter and the value that it shall have."""

    name: str
    value: Value


class Parameters(ModalScreen[Setting | None]):
    """Returns what to set; the run checks it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Leave it")]

    def __init__(self, settings: tuple[tuple[str, Value], ...]) -> None:
        super().__init__()
        self._settings = dict(settings)
        self._chosen = ""

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog", can_focus=False) as box:
            box.border_title = "parameters that can be changed live"
            box.border_subtitle = "escape leaves them as they are"
            width = max(map(len, self._settings), default=0)
            options = [
                Option(Content(f"{name.ljust(width)}  {value}"), id=name)
                for name, value in self._settings.items()
            ]
            yield OptionList(*options, id="settings")
            yield Input(
                placeholder="enter on a line above, then write its new value", id="value", disabled=True
            )
            yield Static("z takes your last change back", markup=False)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Ask for the value of the line."""
        self._chosen = str(event.option_id)
        field = self.query_one("#value", Input)
        field.disabled = False
        field.value = str(self._settings[self._chosen])
        field.border_title, field.border_subtitle = self._chosen, "enter sets it"
        field.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Return what was written; where that is nothing, leave it as it is."""
        self.dismiss(Setting(self._chosen, number(event.value)) if event.value.strip() else None)


def number(text: str) -> Value:
    """Return *text* as the finite number that it is, else as it is: the run says what it wants instead."""
    for kind in (int, float):
        try:
            read = kind(text.strip())
        except ValueError:
            continue
        if isfinite(read):
            return read
    return text.strip()
