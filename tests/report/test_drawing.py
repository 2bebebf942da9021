"""Tables on terminals of any width: numbers stay whole, columns that do not fit come below."""

from io import StringIO

import pytest
from rich.console import Console

from vertumnus.report.drawing import PLAIN_WIDTH, Grid, grid

HEADINGS = ("group", "runs", "mean TTFT", "difference", "", "P90 TTFT", "difference", "")
ROWS = [
    ("policy=paper", "5", "0.462 s", "", "baseline", "0.595 s", "", "baseline"),
    (
        "policy=vllm_dp cluster=pool40_tp4 profile=qwen3_30b_a3b-h20-tp4",
        *("5", "13.464 s", "+866.0 % (+1.1, +2.2)", "worse"),
        *("101.610 s", "+1683.4 % (+1.3, +2.4)", "worse"),
    ),
]


def drawn(width: int, table: Grid | None = None) -> list[str]:
    """Return the lines of *table*, or of the one above, on a terminal of *width* columns."""
    file = StringIO()
    console = Console(file=file, width=width, force_terminal=True, color_system=None)
    console.print(table or grid("title", HEADINGS, ROWS))
    return [line.rstrip() for line in file.getvalue().splitlines()]


@pytest.mark.parametrize("width", [80, 100, 120, 160])
def test_what_does_not_fit_comes_below_and_no_number_is_broken(width: int) -> None:
    """Every cell but the long text is on one line; parts begin with the first column; no line is longer."""
    lines = drawn(width)
    text = "\n".join(lines)
    assert all(len(line) <= width for line in lines)
    assert all(cell in text for row in ROWS for cell in row[1:]) and text.count("title") == 1
    heads = [line.split() for line in lines if line.lstrip().startswith("group")]
    assert (len(heads) > 1) == (width < 160)
    assert all(cell in text for cell in ROWS[1][0].split())


@pytest.mark.parametrize("width", [80, 100, 120])
def test_a_difference_stays_with_its_value(width: int) -> None:
    """Under each heading of a metric its difference and mark are in the same part."""
    for line in drawn(width):
        assert line.count("difference") == line.count("TTFT")


def test_where_there_is_room_nothing_is_parted() -> None:
    """On a wide terminal and in a pipe the table is one."""
    assert drawn(200) == drawn(PLAIN_WIDTH)
    assert sum(line.lstrip().startswith("group") for line in drawn(200)) == 1


def test_a_table_of_text_folds_its_words_and_stays_one() -> None:
    """A meaning stands beside its column however narrow it is."""
    words = [f"word{number}" for number in range(40)]
    lines = drawn(60, grid("", ("column", "meaning"), [("a_column", " ".join(words))], left=True))
    assert all(len(line) <= 60 for line in lines) and sum("column" in line for line in lines) == 2
    assert " ".join(lines).split()[-40:] == words


def test_no_rows_and_no_columns_are_drawn_too() -> None:
    """An answer may be empty."""
    assert any("a" in line for line in drawn(80, grid("", ("a", "b"), [])))
    drawn(80, grid("", (), []))
