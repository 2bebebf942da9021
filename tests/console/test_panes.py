"""What the screens write for given states."""

import pytest
from msgspec.structs import replace

from vertumnus.domain.cluster import CpGroup, Lattice
from vertumnus.domain.units import SECOND
from vertumnus.domain.wording import byte_size
from vertumnus_console.events import Event
from vertumnus_console.panes import choices, queues, trie, workers
from vertumnus_console.panes.cluster import surviving
from vertumnus_console.panes.events import listed
from vertumnus_console.panes.strip import LEGEND, MARKS, strip
from vertumnus_console.view import Running, WorkerView
from vertumnus_console.words import bar, brief, clock, duration, sparkline

PAIR = WorkerView(CpGroup(0, 2), 0, "prefill", 3, SECOND, (Running(7, 40_000, 512),), 90, 128, 0.25, 0.5)
LEFT = WorkerView(CpGroup(2, 1), 0, "idle", 0, 0, (), 0, 64, None, 0.0)
RIGHT = WorkerView(CpGroup(3, 1), 0, "lost", 0, 0, (), 64, 64, None, 0.0)
FOUR = Lattice(4, (1, 2), 4)


def test_boxes_are_as_wide_as_degrees() -> None:
    """A worker of degree 2 takes twice the width of one of degree 1; each has its name, state and queue."""
    line = strip((PAIR, LEFT, RIGHT), FOUR, 7 + 4 * 10).plain
    assert line == "node 0 [0x2 > 3q 1.00 s   ][2x1 .   ][3x1 x   ]"


@pytest.mark.parametrize(
    ("state", "queued", "box"),
    [
        ("prefill", 3, "[39>3q ]"),
        ("waiting", 12, "[39~12q]"),
        ("stalled", 100, "[39x1! ]"),
        ("idle", 0, "[39x1 .]"),
    ],
)
def test_boxes_on_80_columns_say_whose_they_are(state: str, queued: int, box: str) -> None:
    """Eight ranks a line leave a CP1 box six characters: its rank and its queue, or its name."""
    forty = Lattice(40, (1, 2, 4, 8), 8)
    workers = tuple(replace(LEFT, group=CpGroup(rank, 1)) for rank in range(39))
    last = replace(LEFT, group=CpGroup(39, 1), state=state, queued=queued, queue_ns=queued * SECOND)
    lines = strip((*workers, last), forty, 78).plain.splitlines()
    assert lines[4] == "node 4 " + "".join(f"[{rank}x1 .]" for rank in range(32, 39)) + box


def test_boxes_of_a_small_pool_name_their_workers() -> None:
    """Four ranks on 120 columns: with a queue and without, the line has room for who it is."""
    busy = replace(LEFT, state="prefill", queued=12, queue_ns=12 * SECOND)
    line = strip((PAIR, busy, replace(LEFT, group=CpGroup(3, 1))), FOUR, 118).plain
    boxes = "CP2 > 3q 1.00 s  worker 0x2", "CP1 > 12q 12.00 s  2x1", "CP1 . idle  worker 3x1"
    assert [box.strip(" ]") for box in line.split("[")[1:]] == list(boxes) and len(line) == 7 + 4 * 27


def test_boxes_are_filled_by_work() -> None:
    """The busiest, if it has two seconds of work, is filled to the end, the others in proportion to it."""
    busiest = replace(LEFT, group=CpGroup(2, 1), state="prefill", queue_ns=4 * SECOND)
    drawn = strip((PAIR, busiest, RIGHT), FOUR, 7 + 4 * 10)
    filled = [drawn.plain[span.start : span.end] for span in drawn.spans if "muted" in str(span.style)]
    assert len("".join(filled)) == len("node 0 ") + 5 + 10  # 1 s of 4 s of 20 characters, and all of 10


def test_a_selected_worker_survives_as_what_was_made_of_it() -> None:
    """After a merge or a split, the worker with its first rank."""
    assert surviving((PAIR, LEFT, RIGHT), CpGroup(0, 4)) == PAIR
    assert surviving((PAIR, LEFT, RIGHT), CpGroup(1, 1)) == PAIR
    assert surviving((PAIR, LEFT), CpGroup(3, 1)) is surviving((PAIR,), None) is None


def test_nodes_are_lines() -> None:
    """A pool of two nodes has two lines; a worker stands on its own node's."""
    workers = (replace(LEFT, group=CpGroup(0, 4)), replace(PAIR, group=CpGroup(4, 2)))
    first, second = strip(workers, Lattice(8, (2, 4), 4), 80).plain.splitlines()
    assert first.startswith("node 0 [CP4 .") and second.startswith("node 1 [CP2 >")


@pytest.mark.parametrize("width", [10, 24, 40, 80, 200])
@pytest.mark.parametrize("state", MARKS)
def test_strip_fits_any_width_with_any_state(width: int, state: str) -> None:
    """64 ranks on a line stay within the width there is, or one character a rank; the mark is told."""
    workers = tuple(replace(PAIR, group=CpGroup(2 * i, 2), state=state, queued=1_000) for i in range(32))
    line = strip(workers, Lattice(64, (2,), 64), width).plain
    assert len(line) <= max(width, 7 + 64)
    assert line.count(MARKS[state]) >= 32


def test_cells_fit_their_columns() -> None:
    """The widest values leave a gap to the next column; every table fits a screen of 80 with a scroll bar."""
    busy = replace(
        PAIR,
        group=CpGroup(1016, 8),
        queued=9_999,
        queue_ns=9_999 * SECOND,
        running=(Running(99_999, 131_071, 65_536),),
        blocks_used=8_192,
        blocks=8_192,
        hit_rate=1.0,
        busy=1.0,
    )
    fits = zip(workers.COLUMNS, workers.row(busy), strict=True)
    assert all(len(text) < column.width for column, text in fits)
    for table in (workers, queues, trie, choices):
        assert sum(column.width for column in table.COLUMNS) <= 78
    assert workers.row(PAIR) == (
        "0x2",
        "2",
        "prefill",
        "50%",
        "3",
        "1.00 s",
        " 7 40.0k/512",
        "90/128",
        "25%",
    )
    assert workers.row(replace(PAIR, held_by="ann"))[6] == " by ann"


def test_events_are_taken_literally() -> None:
    """A reason with square brackets or a tag is shown as it is."""
    shown = listed((Event(61 * SECOND, "rank_lost", "rank 3: [red]exit[/red] [1]"),)).plain
    assert shown == "   1:01.0  rank lost rank 3: [red]exit[/red] [1]"


def test_numbers_are_short() -> None:
    """Three digits or so, and a dash for what is undefined."""
    assert [duration(s) for s in (None, 0.0, 0.0123, 0.9996, 1.234, 99.99, 1234.5)] == [
        "–",
        "0 ms",
        "12 ms",
        "1.00 s",
        "1.23 s",
        "99.99 s",
        "1,234 s",
    ]
    assert [brief(n) for n in (0, 9_999, 10_000, 99_949, 99_950, 999_499, 999_500, 131_000_000)] == [
        "0",
        "9999",
        "10.0k",
        "99.9k",
        "100k",
        "999k",
        "1.0M",
        "131M",
    ]
    assert [clock(t) for t in (0, 59_990_000_000, 3_725 * SECOND)] == ["0:00.0", "0:59.9", "1:02:05.0"]
    assert [byte_size(n) for n in (0, 512, 1536, 20 * 2**20, 3 * 2**40)] == [
        "0 B",
        "512 B",
        "1.5 KiB",
        "20 MiB",
        "3.0 TiB",
    ]


def test_bars_and_sparklines() -> None:
    """A bar is filled by its share and no further; a sparkline has a gap where there is nothing."""
    assert (bar(0.0, 4), bar(0.5, 4), bar(1.7, 4)) == ("░░░░", "██░░", "████")
    assert sparkline([0.0, None, 0.5, 1.0, 9.0], 1.0) == "▁ ▅██"
    assert sparkline([0.0, None], 0.0) == "▁ "


def test_every_state_is_in_the_legend() -> None:
    """Each mark has its word, and the legend fits a line of 80."""
    assert set(LEGEND.split()[0::2]) == set(MARKS.values()) and len(LEGEND) <= 78
