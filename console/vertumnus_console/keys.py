"""Every key of the console: the one table that bindings, key line, palette and help are made of."""

from typing import Literal, NamedTuple

from textual.binding import Binding

Kind = Literal["screen", "act", "time", "other"]


class Key(NamedTuple):
    """A key and what it does."""

    name: str
    """In a user's key file."""
    keys: str
    """As Textual writes them, by default."""
    label: str
    """A word for the key line."""
    action: str
    help: str
    kind: Kind
    shown: str = ""
    """How the key is written, where Textual's name is no letter."""
    paired: str = ""
    """How the key line writes it together with its counterpart."""
    in_line: bool = True
    """Whether it stands in the key line."""

    def written(self, own: str | None = None, *, in_line: bool = False) -> str:
        """Return how people write the key; *own* is a user's own for it."""
        if own is not None:
            return own.split(",")[0]
        return (self.paired if in_line else "") or self.shown or self.keys.split(",")[0]

    def binding(self) -> Binding:
        """Return the binding; tables and scroll bars would take some of these keys for themselves."""
        is_taken = self.kind == "time" or self.name in ("closer", "up", "down")
        return Binding(self.keys, self.action, self.label, id=self.name, show=False, priority=is_taken)


KEYS: tuple[Key, ...] = (
    Key("overview", "o", "Overview", "pane('overview')", "composition, service, newest events", "screen"),
    Key("workers", "w", "Workers", "pane('workers')", "one a row: queue, step, cache", "screen"),
    Key("queues", "u", "Queues", "pane('queues')", "who waits where, and who passes whom", "screen"),
    Key("trie", "t", "Trie", "pane('trie')", "prefixes by heat; enter looks closer", "screen"),
    Key("choices", "c", "Choices", "pane('choices')", "why this worker; enter shows every term", "screen"),
    Key("events", "e", "Events", "pane('events')", "moves, copies, actions, faults", "screen"),
    Key("model", "r", "Residuals", "pane('model')", "predicted against measured, by degree", "screen"),
    Key("log", "l", "Log", "pane('log')", "inputs, facts and orders as they come", "screen"),
    Key("split", "s", "Split", "split", "the selected worker into its halves", "act"),
    Key("merge", "m", "Merge", "merge", "the selected worker with its sibling", "act"),
    Key("drain", "d", "Drain", "drain", "take the selected worker out of routing, or back", "act"),
    Key("auto", "a", "Auto", "auto", "let the controller move workers; ends a hold", "act"),
    Key("manual", "g", "Manual", "manual", "take the composition from the controller", "act"),
    Key(
        "freeze",
        "f",
        "Freeze",
        "freeze",
        "nobody moves workers; f again: operators, a: controller",
        "act",
    ),
    Key("copy", "y", "Copy", "copy", "the prefix under the cursor to a worker", "act"),
    Key("reclaim", "x", "Reclaim", "reclaim", "delete the prefix under the cursor at a worker", "act"),
    Key("parameters", "p", "Params", "parameters", "beta, lambda, thresholds, H", "act"),
    Key("undo", "z", "Undo", "undo", "take your last change of a parameter back", "act"),
    Key("faster", "plus", "Speed", "speed(2.0)", "a paced run, or a replay", "act", "+", "+/-"),
    Key("slower", "minus", "Speed", "speed(0.5)", "a paced run, or a replay", "act", "-", in_line=False),
    Key("hold", "h", "Hold", "hold", "hold a paced run, or let it go on", "act"),
    Key("up", "up,k", "Select", "select(-1)", "the worker or line before (or k)", "other", "↑", "↑↓"),
    Key("down", "down,j", "Select", "select(1)", "the one after (or j)", "other", "↓", in_line=False),
    Key("busiest", "b", "Busiest", "busiest", "select the worker with the most work", "other"),
    Key("closer", "enter", "Closer", "closer", "the line or the selected worker", "other", "↵"),
    Key("pause", "space", "Pause", "play", "what is shown, or go on; replays play", "time"),
    Key("back", "left", "Seek", "seek(-1)", "5 % of the run back", "time", "←", "←→"),
    Key("on", "right", "Seek", "seek(1)", "5 % of the run on", "time", "→", in_line=False),
    Key("start", "home", "Start", "start", "before the first request", "time", in_line=False),
    Key("end", "end", "End", "end", "the run's end, followed", "time", in_line=False),
    Key("save", "v", "Save", "save", "what is seen, to an SVG and a text file", "other"),
    Key("theme", "D", "Theme", "app.turn_theme", "dark or light", "other", in_line=False),
    Key("help", "question_mark", "Help", "help", "this", "other", "?"),
    Key("quit", "q", "Quit", "app.quit", "detach; the run goes on", "other"),
)


def of_kind(*kinds: Kind) -> tuple[Key, ...]:
    """Return the keys of *kinds*, in the table's order."""
    return tuple(key for key in KEYS if key.kind in kinds)
