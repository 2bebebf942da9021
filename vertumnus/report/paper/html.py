"""The report as one HTML page that needs nothing else: pictures are in it, for light and for dark."""

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from vertumnus.report.paper.chapter import Grid
from vertumnus.report.paper.panels import Picture
from vertumnus.report.paper.section import Section, glance
from vertumnus.report.paper.theme import DARK, LIGHT

STYLE = f"""\
:root {{ color-scheme: light dark; --page: {LIGHT.page}; --ink: {LIGHT.ink}; --faint: {LIGHT.faint}; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --page: {DARK.page}; --ink: {DARK.ink}; --faint: {DARK.faint}; }}
}}
body {{ background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif;
       max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }}
table {{ border-collapse: collapse; margin: 1rem 0; font-size: 0.875rem; }}
caption {{ text-align: left; font-weight: 600; padding: 0.25rem 0; }}
th, td {{ padding: 0.25rem 0.75rem; border-bottom: 1px solid var(--faint); text-align: right; }}
th:first-child, td:first-child {{ text-align: left; }}
img {{ max-width: 100%; height: auto; }}
figure {{ margin: 1rem 0; }}
figcaption, .sources {{ font-size: 0.875rem; }}
.wide {{ overflow-x: auto; }}
"""

Files = Mapping[tuple[str, str], bytes]
"""SVG by name of the picture and of the theme."""


def html(title: str, intro: Sequence[str], sections: Sequence[Section], svg: Files) -> str:
    """Return the whole page."""
    body = [f"<h1>{escape(title)}</h1>", *(f"<p>{escape(line)}</p>" for line in intro), *_contents(sections)]
    for section in sections:
        body += _section(section, svg)
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>",
            f"<style>\n{STYLE}</style></head><body>",
            *body,
            "</body></html>\n",
        ]
    )


def _contents(sections: Sequence[Section]) -> Iterator[str]:
    links = {section.entry.title: f"#{section.entry.name}" for section in sections}
    yield from _table(glance(sections), links)


def _section(section: Section, svg: Files) -> Iterator[str]:
    chapter = section.chapter
    yield f'<h2 id="{escape(section.entry.name)}">{escape(section.entry.title)}</h2>'
    yield f"<p>{escape(chapter.says)}</p>"
    yield from _listed(section.sources, "sources")
    if section.statements:
        yield from _table(section.statements)
    for picture in chapter.pictures:
        yield from _picture(picture, svg)
    for grid in chapter.grids:
        yield from _table(grid)
    if chapter.causes:
        yield from ("<p>Likely causes of differences:</p>", *_listed(chapter.causes))
    if section.left_out:
        yield from ("<p>Left out:</p>", *_listed(section.left_out, "sources"))


def _picture(picture: Picture, svg: Files) -> Iterator[str]:
    yield "<figure><picture>"
    yield f'<source media="(prefers-color-scheme: dark)" srcset="{_address(svg[picture.name, DARK.name])}">'
    yield f'<img alt="{escape(picture.caption)}" src="{_address(svg[picture.name, LIGHT.name])}">'
    yield f"</picture><figcaption>{escape(picture.caption)}.</figcaption></figure>"


def _address(picture: bytes) -> str:
    return "data:image/svg+xml;base64," + b64encode(picture).decode()


def _table(grid: Grid, links: Mapping[str, str] | None = None) -> Iterator[str]:
    yield '<div class="wide"><table>'
    if grid.title:
        yield f"<caption>{escape(grid.title)}</caption>"
    yield "<tr>" + "".join(f"<th>{escape(heading)}</th>" for heading in grid.headings) + "</tr>"
    for row in grid.rows:
        first, *others = (escape(cell) for cell in row)
        target = (links or {}).get(row[0])
        first = first if target is None else f'<a href="{target}">{first}</a>'
        yield f"<tr><td>{first}</td>" + "".join(f"<td>{cell}</td>" for cell in others) + "</tr>"
    yield "</table></div>"


def _listed(lines: Sequence[str], kind: str = "") -> Iterator[str]:
    yield f'<ul class="{kind}">' if kind else "<ul>"
    yield from (f"<li>{escape(line)}</li>" for line in lines)
    yield "</ul>"
