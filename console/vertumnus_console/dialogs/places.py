"""Asks at which worker an action on a prefix shall be done, with what it would do at each."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from vertumnus.domain.cluster import CpGroup, group_named
from vertumnus_console.looks.places import Place


class ChoosePlace(ModalScreen[CpGroup | None]):
    """Returns the worker that is chosen; where nothing can be done, it says why and cannot be chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,n,q", "dismiss(None)", "Leave it")]

    def __init__(self, title: str, places: tuple[Place, ...]) -> None:
        super().__init__()
        self._title = title
        self._places = places

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog", can_focus=False) as box:
            box.border_title = self._title
            options = [
                Option(
                    Content(f"{place.worker!s:<7} {place.text}"),
                    id=str(place.worker),
                    disabled=not place.is_possible,
                )
                for place in self._places
            ]
            yield OptionList(*options, id="places")
            is_possible = any(place.is_possible for place in self._places)
            choice = "enter: do it there    escape: leave it" if is_possible else "escape: close"
            yield Static(choice, id="choice", markup=False)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Return the worker of the line."""
        self.dismiss(group_named(str(event.option_id)))
