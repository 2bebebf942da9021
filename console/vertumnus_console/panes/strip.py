"""The composition drawn as nodes and ranks: a worker is as wide as its degree."""

from collections.abc import Iterator

from textual.content import Content

from vertumnus.domain.cluster import CpGroup, Lattice
from vertumnus.domain.units import to_seconds
from vertumnus_console.view import State, WorkerView
from vertumnus_console.words import duration

MARKS: dict[State, str] = {
    "prefill": ">",
    "idle": ".",
    "waiting": "~",
    "stalled": "!",
    "draining": "-",
    "drained": "#",
    "forming": "=",
    "lost": "x",
}
"""Without colour a worker's state is still told."""
STYLES: dict[State, str] = {
    "prefill": "$text-success",
    "idle": "$text-muted",
    "waiting": "$text-warning",
    "stalled": "bold $text-warning",
    "draining": "$text-accent",
    "drained": "bold $text-accent",
    "forming": "bold $text-accent",
    "lost": "bold $text-error",
}
LEGEND = "> prefill . idle ~ waiting ! stalled - draining # drained = forming x lost"
WIDEST = 20
"""Characters a rank at most: more spreads a small pool too thin to compare."""
QUIET: tuple[State, ...] = ("idle", "lost", "drained", "forming")
"""States without a queue that says something."""


def strip(
    workers: tuple[WorkerView, ...], lattice: Lattice, width: int, selected: CpGroup | None = None
) -> Content:
    """Return one line a node in *width* characters, the ranks of *lattice* side by side."""
    columns = min(lattice.ranks_per_node, lattice.gpus)
    nodes = -(-lattice.gpus // lattice.ranks_per_node)
    label = len(f"node {nodes - 1} ")
    cell = max(1, min(WIDEST, (width - label) // columns))
    by_node: dict[int, list[WorkerView]] = {node: [] for node in range(nodes)}
    for worker in workers:
        by_node[worker.group.first_rank // lattice.ranks_per_node].append(worker)
    lines = []
    for node, here in by_node.items():
        boxes = (Content.styled(_box(w, cell * w.group.degree), _style(w, selected)) for w in here)
        lines.append(Content.assemble(f"node {node} ".ljust(label), *boxes))
    return Content("\n").join(lines)


def _style(worker: WorkerView, selected: CpGroup | None) -> str:
    return STYLES[worker.state] + (" reverse" if worker.group == selected else "")


def _box(worker: WorkerView, width: int) -> str:
    if width < 3:
        return MARKS[worker.state] * width
    inner = next((text for text in _captions(worker) if len(text) <= width - 2), MARKS[worker.state])
    return f"[{inner.ljust(width - 2)}]"


def _captions(worker: WorkerView) -> Iterator[str]:
    """Yield what a box may say, the fullest first."""
    degree, mark = worker.group.degree, MARKS[worker.state]
    if worker.state in QUIET:
        yield f"CP{degree} {mark} {worker.state}  worker {worker.group}"
        yield f"CP{degree} {mark} {worker.state}"
    else:
        queue = f"{worker.queued}q"
        yield f"CP{degree} {mark} {queue} {duration(to_seconds(worker.queue_ns))}  worker {worker.group}"
        yield f"CP{degree} {mark} {queue} {duration(to_seconds(worker.queue_ns))}"
        yield f"CP{degree} {mark} {queue}"
        yield f"{degree}{mark}{queue}"
    yield f"CP{degree} {mark}"
    yield f"{degree}{mark}"
