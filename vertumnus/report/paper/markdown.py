"""The report as Markdown, with its pictures beside it."""

from collections.abc import Iterator, Sequence

from vertumnus.report.paper.chapter import Grid
from vertumnus.report.paper.panels import Picture
from vertumnus.report.paper.section import Section, glance


def markdown(title: str, intro: Sequence[str], sections: Sequence[Section]) -> str:
    """Return the whole report; pictures are files NAME-light and NAME-dark, .svg and .png, of its folder."""
    lines = [f"# {title}", "", *_paragraphs(intro), *_table(glance(sections))]
    for section in sections:
        lines += _section(section)
    return "\n".join(lines).rstrip() + "\n"


def _section(section: Section) -> Iterator[str]:
    chapter = section.chapter
    yield from (f"## {section.entry.title}", "", chapter.says, "")
    yield from _bullets(section.sources)
    if section.statements:
        yield from _table(section.statements)
    for picture in chapter.pictures:
        yield from _picture(picture)
    for grid in chapter.grids:
        yield from _table(grid)
    if chapter.causes:
        yield from ("Likely causes of differences:", "", *_bullets(chapter.causes))
    if section.left_out:
        yield from ("Left out:", "", *_bullets(section.left_out))


def _picture(picture: Picture) -> Iterator[str]:
    yield "<picture>"
    yield f'<source media="(prefers-color-scheme: dark)" srcset="{picture.name}-dark.svg">'
    yield f'<img alt="{picture.caption}" src="{picture.name}-light.svg">'
    yield "</picture>"
    yield ""
    yield f"*{picture.caption}.*"
    yield ""


def _table(grid: Grid) -> Iterator[str]:
    if grid.title:
        yield from (f"**{grid.title}**", "")
    yield _row(grid.headings)
    yield _row(["---", *["---:"] * (len(grid.headings) - 1)])
    yield from (_row(row) for row in grid.rows)
    yield ""


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _paragraphs(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield from (line, "")


def _bullets(lines: Sequence[str]) -> Iterator[str]:
    yield from (f"- {line}" for line in lines)
    yield ""
