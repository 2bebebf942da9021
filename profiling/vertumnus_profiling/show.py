"""A profile's results as text on stdout."""

from collections.abc import Iterable

from vertumnus.commandline.columns import in_columns
from vertumnus.domain.prefill_time import PrefillTimeModel
from vertumnus.domain.profile import Form, FormError
from vertumnus.domain.wording import counted
from vertumnus_profiling.break_even import break_even
from vertumnus_profiling.capacity import LEAST_LOAD, MOST_LOAD
from vertumnus_profiling.kappa import SHARE, Kappa, Kappas


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


def show_kappas(kappas: Kappas) -> None:
    """Print the target, and kappa of each degree in each pool."""
    print(
        f"target {kappas.target:.1%} of the tokens: {SHARE:.0%} of the least that a pool attains without "
        f"load ({kappas.without_load:.1%})"
    )
    for each in kappas.found:
        print(kappa_line(each, kappas.target))


def kappa_line(kappa: Kappa, target: float) -> str:
    """Return what was found for one degree in one pool."""
    pool, told = kappa.pool, f"CP{kappa.degree}, {counted(kappa.workers, 'worker')}:"
    attained = "nothing" if pool.attainment is None else f"{pool.attainment:.1%}"
    if kappa.value is not None:
        return (
            f"{told} kappa {kappa.value:.3f} s of work/s each: {attained} within target at "
            f"{pool.rate:.3g} req/s"
        )
    if (pool.attainment or 0.0) < target:
        return f"{told} no kappa: {attained} within target even at a load of {LEAST_LOAD:.0%}"
    return f"{told} no kappa: {attained} within target even at a load of {MOST_LOAD:.0%}; use more requests"


def _from(tokens: int | None) -> str:
    return "at no length" if tokens is None else f"from {counted(tokens, 'uncached token')} on"
