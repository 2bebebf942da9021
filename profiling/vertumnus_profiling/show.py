"""A profile's results as text on stdout."""

from collections.abc import Iterable, Mapping

from vertumnus.commandline.columns import in_columns
from vertumnus.domain.prefill_time import PrefillTimeModel
from vertumnus.domain.profile import Form, FormError
from vertumnus_profiling.break_even import break_even
from vertumnus_profiling.capacity import LEAST_LOAD, MOST_LOAD, TARGET, Capacity


def show_errors(errors: Iterable[FormError], chosen: Form) -> None:
    """Print the held-out errors of every form; *chosen* is the one that runs use."""
    rows: list[tuple[str, ...]] = [("held-out error", "degree", "points", "mean", "P50", "P90", "P99")]
    for error in errors:
        shares = (f"{share:.1%}" for share in (error.mean, error.p50, error.p90, error.p99))
        form = f"{error.form} (used)" if error.form == chosen else error.form
        rows.append((form, f"CP{error.degree}", str(error.points), *shares))
    print(in_columns(rows))


def show_break_even(model: PrefillTimeModel) -> None:
    """Print from which length on each degree is faster than the smallest."""
    base, *larger = model.degrees
    for degree in larger:
        print(f"CP{degree} is faster than CP{base} {_from(break_even(model, degree, base))}, nothing cached")


def show_capacity(found: Mapping[int, Capacity]) -> None:
    """Print kappa of each degree."""
    for degree, capacity in found.items():
        print(f"CP{degree} {capacity_line(capacity)}")


def capacity_line(capacity: Capacity) -> str:
    """Return what was found about one degree."""
    attained = "nothing" if capacity.attainment is None else f"{capacity.attainment:.1%}"
    if capacity.kappa is not None:
        return (
            f"kappa {capacity.kappa:.3f} s of work/s: {attained} within target at {capacity.rate:.3g} req/s"
        )
    if (capacity.attainment or 0.0) < TARGET:
        return f"has no kappa: {attained} within target even at a load of {LEAST_LOAD:.0%}"
    return f"has no kappa: {attained} within target even at a load of {MOST_LOAD:.0%}; use more requests"


def _from(tokens: int | None) -> str:
    return "at no length" if tokens is None else f"from {tokens:,} uncached tokens on"
