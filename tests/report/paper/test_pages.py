"""The report's pages and pictures: all that is to say, nothing that is elsewhere, the same every time."""

import re
from pathlib import Path

import pytest

from vertumnus.domain.errors import ConfigError
from vertumnus.report.compare.intervals import Difference
from vertumnus.report.paper.catalogue import ENTRIES
from vertumnus.report.paper.chapter import Chapter, Claim, Grid, exactly
from vertumnus.report.paper.panels import Bars, Panel, Picture, Series
from vertumnus.report.paper.section import Section, glance

pytest.importorskip("matplotlib")
from matplotlib import rc_context

from vertumnus.report.paper.draw import draw
from vertumnus.report.paper.theme import DARK, LIGHT
from vertumnus.report.paper.write import PAGES, drawn, report_files, write_files

LINES = Panel(
    "(a) <lines>",
    "rate [requests/s]",
    "TTFT [s]",
    [
        Series("ours", [1024, 2048, 4096], [1.0, None, 3.0], low=[0.9, None, 2.5], high=[1.1, None, 3.5]),
        Series("theirs", [1024, 4096], [2.0, 2.5], "points"),
        Series("stated", [4096], [2.71], "stated"),
    ],
    x_scale="tokens",
    y_scale="log",
    marks=[2000.0],
    diagonal=True,
)
BARS = Panel(
    "(b) bars", "time [s]", "", bars=Bars(["S1", "S2"], [("drain", [1.0, 2.0]), ("switch", [0.5, 0.1])])
)
AREA = Panel(
    "(c) area",
    "time [s]",
    "GPUs",
    [Series("CP4", [0, 9], [8, 8], "area"), Series("CP8", [0, 9], [8, 8], "area")],
)
PICTURE = Picture("figure0", "What & why", [BARS])
ALL_KINDS = Picture("figure0", "What & why", [LINES, BARS, AREA])


def a_section(**changes: object) -> Section:
    """A section with one of everything."""
    claims = [
        Claim("speed-up", "x", exactly(2.0), Difference(3.0, 2.9, 3.1)),
        Claim("a | b", "s", exactly(2.0), Difference(2.0, None, None), "executed"),
        Claim("unknown", "s", exactly(2.0), None),
    ]
    chapter = Chapter(
        "It <says> so.", claims, [Grid("Means", ("", "mean"), [("x|y", "1 s")])], [PICTURE], ["Why & how."]
    )
    return Section(ENTRIES[0], chapter, ["SIMULATED: 3 runs"], ["a run: INVALID"])._replace(**changes)


def test_all_is_on_both_pages_and_the_html_page_needs_no_other_file(tmp_path: Path) -> None:
    """Statements, pictures, tables, causes and what was left out; the HTML page has its pictures in it."""
    files = report_files([drawn(a_section())], ["A slice."])
    write_files(tmp_path / "out", files)
    text, page = (files[name].decode() for name in PAGES)
    for part in (
        "3.00x (2.90x to 3.10x)",
        "+50.0 %",
        "higher",
        "executed",
        "Means",
        "a run: INVALID",
        "A slice.",
    ):
        assert part in text and part in page
    assert "x\\|y" in text and "It &lt;says&gt; so." in page and "Why &amp; how." in page
    assert re.findall(r'(?:src|srcset|href)="(?!data:|#)([^"]*)"', page) == []
    assert page.count("data:image/svg+xml;base64,") == 2  # light and dark
    named = re.findall(r'(?:src|srcset)="([^"]*)"', text)
    assert sorted(named) == ["figure0-dark.svg", "figure0-light.svg"]
    for name in (*named, "figure0-dark.png", "figure0-light.png"):
        assert (tmp_path / "out" / name).stat().st_size > 1_000


def test_the_same_numbers_give_the_same_files() -> None:
    """No date, no version, no random id in any of them."""
    one, two = (report_files([drawn(a_section())]) for _ in range(2))
    assert len(one) == 6
    for name, data in one.items():
        assert data == two[name], name


def test_settings_of_the_user_make_no_other_pictures() -> None:
    """What a matplotlibrc says of lines and fonts is not asked for."""
    with rc_context({"lines.linewidth": 9.0, "font.family": "serif", "savefig.dpi": 30}):
        files = drawn(a_section()).files
    assert files == drawn(a_section()).files


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    """The message names what is in the way."""
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"--out: .*file.*cannot be written"):
        write_files(tmp_path / "file" / "out", report_files([drawn(a_section())]))


def test_what_the_head_of_the_report_counts() -> None:
    """Two statements are compared, one agrees, and the other is 50 % off."""
    assert glance([a_section()]).rows == [("Table 1: workloads", "SIMULATED", "2", "1", "+50.0 % (speed-up)")]


def test_pictures_are_legible_in_both_themes() -> None:
    """Lines, bars and areas are drawn in the theme's colours, which stand out from its page."""
    for theme in (LIGHT, DARK):
        svg = draw(ALL_KINDS, theme)["svg"].decode().lower()
        assert all(colour.lower() in svg for colour in (theme.page, theme.ink, *theme.series[:4]))
        assert all(_contrast(colour, theme.page) > 2.0 for colour in theme.series)
        assert _contrast(theme.ink, theme.page) > 7.0


def _contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours after WCAG 2."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
