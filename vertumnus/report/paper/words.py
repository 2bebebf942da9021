"""Numbers of the report as text, by their unit."""

from collections.abc import Mapping
from math import inf, isinf

from vertumnus.report.compare.intervals import Difference
from vertumnus.report.paper.chapter import Claim, Unit

NOT_KNOWN = "no run"
SHARES = ("share", "change", "points")
"""Units that differ in points; the others differ by a factor."""
CLOSE, CLOSE_SHARE = 0.02, 0.01
"""2 %, or a point of shares: what the generators are calibrated to."""

BESIDE: Mapping[Unit, tuple[str, str]] = {
    "change": ("gains less", "gains more"),
    "points": ("gains more", "gains less"),
}
"""What to call ours above and below what is stated: changes are of TTFT, points of attainment."""


def number(value: float, unit: Unit) -> str:
    """Return *value* with its unit."""
    match unit:
        case "share":
            return f"{100 * value:.1f} %"
        case "change":
            return f"{100 * value:+.1f} %"
        case "points":
            return f"{100 * value:+.1f} points"
        case "x":
            return f"{value:.2f}x"
        case "s":
            return f"{value:.3g} s"
        case _:
            return f"{value:,.0f}" if value >= 100 else f"{value:.4g}"


def value_text(ours: Difference | None, unit: Unit) -> str:
    """Return a mean with its interval, "2.7x (2.6x to 2.8x)"; without for one seed, or without spread."""
    if ours is None:
        return NOT_KNOWN
    least = 0.0 if unit in ("share", "s", "x") else -inf
    most = 1.0 if unit == "share" and ours.mean <= 1.0 else inf  # a share of a whole; an error may be more
    bounds = (None if each is None else min(max(each, least), most) for each in ours)
    mean, low, high = (None if each is None else number(each, unit) for each in bounds)
    return str(mean) if low is None or low == high else f"{mean} ({low} to {high})"


def stated_text(claim: Claim) -> str:
    """Return what the paper states: one value, a range, or a bound."""
    low, high = claim.paper
    if low == high:
        return number(low, claim.unit)
    if isinf(low):
        return f"at most {number(high, claim.unit)}"
    if isinf(high):
        return f"at least {number(low, claim.unit)}"
    return f"{number(low, claim.unit)} to {number(high, claim.unit)}"


def difference_text(claim: Claim) -> str:
    """Return how far ours lies from what is stated: in points for shares and changes, else relative."""
    if claim.ours is None:
        return ""
    away = claim.lies
    if not away:
        return "none" if claim.paper[0] == claim.paper[1] else "within"
    if claim.unit in SHARES:
        return f"{100 * away:+.1f} points"
    bound = claim.ours.mean - away
    return f"{100 * away / abs(bound):+.1f} %" if bound else number(away, claim.unit)


def verdict(claim: Claim) -> str:
    """Return "agrees" where what is stated meets our interval, "close" where ours is as near as `CLOSE`.

    "open" where it meets no change, too: the seeds cannot tell. Else "higher" or "lower", or what `BESIDE`
    says; "" without a run.
    """
    if claim.ours is None:
        return ""
    mean, low, high = claim.ours
    lowest, highest = mean if low is None else low, mean if high is None else high
    if lowest <= claim.paper[1] and highest >= claim.paper[0]:
        return "open" if claim.unit in BESIDE and lowest <= 0.0 <= highest else "agrees"
    if abs(claim.lies) <= (CLOSE_SHARE if claim.unit in SHARES else CLOSE * abs(mean - claim.lies)):
        return "close"
    above, below = BESIDE.get(claim.unit, ("higher", "lower"))
    return above if claim.lies > 0.0 else below
