"""The two looks of every picture: ink on white, and light on a dark page; both for any colour vision."""

from typing import Any, NamedTuple

from vertumnus.report.palette import COLOURS


class Theme(NamedTuple):
    """Colours of one look."""

    name: str
    page: str
    ink: str
    faint: str
    """Of grids and of lines that only help."""
    series: tuple[str, ...]
    """One after the other; marks and dashes differ with them."""

    @property
    def settings(self) -> dict[str, Any]:
        """Return what matplotlib is told."""
        inked = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
        paged = ("figure.facecolor", "axes.facecolor", "savefig.facecolor", "legend.facecolor")
        return {
            **dict.fromkeys(inked, self.ink),
            **dict.fromkeys(paged, self.page),
            "grid.color": self.faint,
            "font.size": 9.0,
            "axes.titlesize": 9.5,
            "svg.hashsalt": "vertumnus",  # the same picture is the same file
        }


LIGHT = Theme("light", "#ffffff", "#1f2328", "#c8ccd0", COLOURS)
DARK = Theme(
    "dark",
    "#0d1117",
    "#e6edf3",
    "#3d444d",
    # Okabe and Ito's, lightened until each has a contrast of 4.5 or more with the page
    ("#4FA8E0", "#F08A4B", "#33C49A", "#E0A0C8", "#F0B73A", "#8CD0F5", "#e6edf3"),
)
THEMES = (LIGHT, DARK)
