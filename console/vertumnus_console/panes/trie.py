"""The prefix index by heat."""

from textual.content import Content

from vertumnus.domain.units import BlockKey, to_seconds
from vertumnus.domain.wording import counted
from vertumnus_console.looks.trie import Prefix, PrefixUse, TrieLook, trie
from vertumnus_console.panes.table import Column, Table
from vertumnus_console.player import Look, Snapshot
from vertumnus_console.words import UNDEFINED, brief, duration, labelled

COLUMNS = (
    Column("prefix", 7),
    Column("tokens", 7, is_right=True),
    Column("access", 7, is_right=True),
    Column("missed", 8, is_right=True),
    Column("  by degree: access, missed, copies", 41, is_wide=True),
    Column("holders", 8, is_right=True),
)


class TriePane(Table):
    """The screen that answers: which prefixes are hot, and are they where they are wanted?"""

    LOOK = Look("trie", trie, every=5)

    def __init__(self, *, id: str) -> None:
        super().__init__(COLUMNS, "no prefix was asked for so far", id=id)
        self._prefixes: tuple[Prefix, ...] = ()
        self._shown: TrieLook | None = None

    def show(self, snapshot: Snapshot) -> None:
        """Draw *snapshot*."""
        looked = snapshot.looked
        if looked is None or looked.name != self.LOOK.name or looked.content is self._shown:
            return
        look: TrieLook = looked.content
        self._shown = look
        self._prefixes = look.prefixes
        self.border_title = f"{counted(look.nodes, 'block')} known, {look.wanted:,} of them wanted"
        self.fill([row(prefix) for prefix in look.prefixes])

    @property
    def pointed(self) -> BlockKey | None:
        """The prefix under the cursor, by its last block."""
        return self._prefixes[self.cursor_row].key if self.cursor_row < len(self._prefixes) else None


def row(prefix: Prefix) -> tuple[str, ...]:
    """Return the cells of *prefix*."""
    by_degree = "".join(
        f" CP{heat.degree}{heat.access:6.1f}{_missed(heat.missed_ns):>7}{heat.replicas:>3}"
        for heat in prefix.heat
    )
    return (
        str(prefix.key),
        brief(prefix.tokens),
        f"{prefix.access:.1f}",
        _missed(prefix.missed_ns),
        by_degree,
        str(len(prefix.holders)),
    )


def told(use: PrefixUse) -> Content:
    """Return one prefix, looked at closely."""
    prefix = use.prefix
    lines = [
        f"prefix {prefix.key}: {counted(prefix.tokens, 'token')} in {counted(prefix.blocks, 'block')}",
        "",
        "degree   access   missed   replicas",
        *(
            f"CP{heat.degree}".ljust(6) + f"{heat.access:9.1f}{_missed(heat.missed_ns):>9}{heat.replicas:>11}"
            for heat in prefix.heat
        ),
        "",
        "held along the path, by blocks",
    ]
    first = 1
    for last, holders in use.path:
        lines += labelled(f"{first}-{last}", ", ".join(map(str, holders)) or "nobody")
        first = last + 1
    lines += ["", "used now by"]
    lines += [f"request {request_id}".ljust(16) + where for request_id, where in use.users]
    return Content("\n".join(lines if use.users else [*lines, "no open request"]))


def _missed(missed_ns: float) -> str:
    return duration(to_seconds(round(missed_ns))) if missed_ns else UNDEFINED
