"""The composition drawn as nodes and ranks: a worker is as wide as its degree."""

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from textual.content import Content

from vertumnus.domain.cluster import CpGroup, Lattice
from vertumnus.domain.units import SECOND, Nanoseconds, to_seconds
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
HUES: dict[State, str] = {
    "prefill": "success",
    "idle": "success",
    "waiting": "warning",
    "stalled": "warning",
    "draining": "accent",
    "drained": "accent",
    "forming": "accent",
    "lost": "error",
}
"""Names of colours of the theme."""
FULL_NS: Nanoseconds = 2 * SECOND
"""A box is full with this much predicted work, or with that of the busiest worker, if it has more."""
LEGEND = "> prefill . idle ~ waiting ! stalled - draining # drained = forming x lost"
WIDEST = 30
"""Characters a rank at most, all that a box says: more spreads a small pool too thin to compare."""
QUIET: tuple[State, ...] = ("idle", "lost", "drained", "forming")
"""States without a queue that says something."""


class Grid(NamedTuple):
    """How nodes are laid out."""

    cell: int
    """Characters a rank."""
    per_line: int
    """Nodes a line."""


def grid(lattice: Lattice, width: int, height: int) -> Grid:
    """Return the widest cells with which the nodes of *lattice* fit *width* x *height* characters.

    Where none do, the narrowest: the screen then scrolls.
    """
    columns = min(lattice.ranks_per_node, lattice.gpus)
    nodes, label = _nodes(lattice), _label(lattice)
    for cell in range(max(1, min(WIDEST, (width - label) // columns)), 0, -1):
        per_line = max(1, (width + 1) // (label + columns * cell + 1))
        if -(-nodes // per_line) <= height:
            return Grid(cell, per_line)
    return Grid(1, max(1, (width + 1) // (label + columns + 1)))


def strip(
    workers: tuple[WorkerView, ...],
    lattice: Lattice,
    width: int,
    height: int = 100,
    selected: CpGroup | None = None,
) -> Content:
    """Return the nodes of *lattice* with their workers, *width* wide and *height* high if they fit."""
    cell, per_line = grid(lattice, width, height)
    by_node: list[list[WorkerView]] = [[] for _ in range(_nodes(lattice))]
    for worker in workers:
        by_node[worker.group.first_rank // lattice.ranks_per_node].append(worker)
    label = _label(lattice)
    most = max((worker.queue_ns for worker in workers), default=0)
    parts: list[tuple[str, str]] = []
    for node, here in enumerate(by_node):
        parts.append((f"node {node} ".ljust(label), "$foreground-muted"))
        for worker in here:
            parts += _box(worker, cell * worker.group.degree, max(FULL_NS, most), worker.group == selected)
        is_last = node + 1 == len(by_node)
        parts.append(("" if is_last else "\n" if (node + 1) % per_line == 0 else " ", ""))
    return Content.assemble(*_merged(parts))


def _merged(parts: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Join neighbours of one style: a large pool has fewer changes of state than workers."""
    for style, run in groupby(parts, key=itemgetter(1)):
        yield "".join(text for text, _ in run), style


def _nodes(lattice: Lattice) -> int:
    return -(-lattice.gpus // lattice.ranks_per_node)


def _label(lattice: Lattice) -> int:
    return len(f"node {_nodes(lattice) - 1} ")


def _box(
    worker: WorkerView, width: int, full_ns: Nanoseconds, is_selected: bool
) -> Iterator[tuple[str, str]]:
    """Yield a worker's box in two parts: as much of it as it has work of *full_ns*, and the rest."""
    text, hue = _text(worker, width), HUES[worker.state]
    filled = min(width, -(-worker.queue_ns * width // full_ns))
    mark = " bold reverse" if is_selected else ""
    yield text[:filled], f"$text-{hue} on ${hue}-muted{mark}"
    yield (
        text[filled:],
        (
            f"$foreground-muted on $surface{mark}"
            if worker.state == "idle"
            else f"$text-{hue} on $surface{mark}"
        ),
    )


def _text(worker: WorkerView, width: int) -> str:
    if width < 3:
        return MARKS[worker.state] * width
    inner = next((text for text in _captions(worker) if len(text) <= width - 2), MARKS[worker.state])
    return f"[{inner.ljust(width - 2)}]"


def _captions(worker: WorkerView) -> Iterator[str]:
    """Yield what a box may say, the fullest first: what is left out last is whose it is."""
    group, mark = worker.group, MARKS[worker.state]
    rank, degree = group.first_rank, group.degree
    if worker.state in QUIET:
        yield f"CP{degree} {mark} {worker.state}  worker {group}"
        yield f"CP{degree} {mark} {worker.state}  {group}"
        yield f"{group} {mark} {worker.state}"
        yield f"{group} {mark}"
    else:
        queue = f"{worker.queued}q"
        work = duration(to_seconds(worker.queue_ns))
        yield f"CP{degree} {mark} {queue} {work}  worker {group}"
        yield f"CP{degree} {mark} {queue} {work}  {group}"
        yield f"{group} {mark} {queue} {work}"
        yield f"{group}{mark}{queue} {work}"
        yield f"{group} {mark} {queue}"
        yield f"{group}{mark}{queue}"
        yield f"{rank}{mark}{queue}"
    yield f"{group}{mark}"
    yield f"{rank}{mark}"
