"""A screen of text that scrolls."""

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static


class Page(VerticalScroll):
    """One Static, updated when its text has changed."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._told: Content | None = None

    def compose(self) -> ComposeResult:
        yield Static(id=f"{self.id}-text")

    def tell(self, text: Content) -> None:
        """Show *text*."""
        if self._told is None or not text.is_same(self._told):  # ``==`` compares the words alone
            self._told = text
            self.query_one(Static).update(text)
