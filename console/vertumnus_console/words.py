"""Numbers as the screen writes them; what is undefined is a dash."""

from collections.abc import Sequence
from textwrap import wrap

from vertumnus.domain.units import Nanoseconds, to_seconds

UNDEFINED = "–"


def duration(seconds: float | None) -> str:
    """Return *seconds* to about three digits: 12 ms, 1.23 s, 456 s."""
    if seconds is None:
        return UNDEFINED
    if seconds < 0.9995:
        return f"{seconds * 1e3:.0f} ms"
    return f"{seconds:.2f} s" if seconds < 99.995 else f"{seconds:,.0f} s"


def clock(instant: Nanoseconds) -> str:
    """Return an instant of the run's clock: 5:30.1, 1:05:30.1."""
    minutes, seconds = divmod(int(to_seconds(instant) * 10) / 10, 60)
    hours, minutes = divmod(int(minutes), 60)
    return f"{hours}:{minutes:02}:{seconds:04.1f}" if hours else f"{minutes}:{seconds:04.1f}"


def percent(share: float | None, decimals: int = 1) -> str:
    """Return *share*, 0..1, in percent."""
    return UNDEFINED if share is None else f"{share:.{decimals}%}"


def rate(per_second: float | None) -> str:
    """Return a rate [1/s]."""
    return UNDEFINED if per_second is None else f"{per_second:.2f}/s"


def brief(number: int) -> str:
    """Return *number* in at most five characters: 9500, 12.3k, 456k, 7.8M."""
    if number < 10_000:
        return str(number)
    scaled, letter = (number / 1e3, "k") if number < 999_500 else (number / 1e6, "M")
    return f"{scaled:.1f}{letter}" if scaled < 99.95 else f"{scaled:.0f}{letter}"


LABEL, LINE = 13, 76
"""Characters of a label, and of a line with its label: what a dialog has room for on 80 columns."""


def labelled(label: str, text: str) -> list[str]:
    """Return *text* behind its *label*, in as many lines as it takes, each as far in as the first."""
    lines = wrap(text, LINE - LABEL) or [""]
    return [label.ljust(LABEL) + lines[0], *(" " * LABEL + line for line in lines[1:])]


BARS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float | None], most: float) -> str:
    """Return one character a value, as high as its share of *most*; a space where there is none."""
    top = len(BARS) - 1
    return "".join(
        " " if value is None else BARS[min(top, round(top * value / most)) if most > 0.0 else 0]
        for value in values
    )


def bar(share: float, width: int) -> str:
    """Return a bar of *width* characters of which *share*, 0..1, is filled."""
    filled = round(max(0.0, min(1.0, share)) * width)
    return "█" * filled + "░" * (width - filled)


def cropped(text: str, width: int) -> str:
    """Return *text* in at most *width* characters."""
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"
