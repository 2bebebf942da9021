"""Whether a composition is fit for the observed demand after a move, for splits and merges alike (sec. 6.2).

The requests of the window are predicted anew on the composition before and on the one after (`spread`).
The bound is ``min(1, upper)``: what lies above it is not carried, or would ask for a split at once.

- A merge is admitted when the composition after it carries the demand.
- A split for the mix is admitted when the composition after it carries the demand.
- A split for capacity is admitted when it lowers the utilisation. It need not carry all: out of a heavy
  overload the way to enough capacity leads over compositions that are still overloaded.
- No split is admitted that the next windows would undo: utilisation after it below ``lower``, where the
  merge back would carry the demand.
"""

from collections.abc import Callable

from vertumnus.domain.cluster import Composition
from vertumnus.domain.move import Move
from vertumnus.domain.prefill_time import PrefillTimeModel
from vertumnus.policy.reconfig.capacity import Capacity
from vertumnus.policy.reconfig.conditions import Cause
from vertumnus.policy.reconfig.config import Thresholds
from vertumnus.policy.reconfig.moves import apply
from vertumnus.policy.reconfig.spread import spread
from vertumnus.policy.reconfig.window import WindowReport


def post_check(
    report: WindowReport,
    composition: Composition,
    cause: Cause,
    thresholds: Thresholds,
    capacity: Capacity,
    prefill_time: PrefillTimeModel,
) -> Callable[[Move], bool]:
    """Return the test that a move on *composition*, asked for by *cause*, has to pass.

    The test raises ConfigError when kappa is missing for a degree before or after the move.
    """
    known: dict[tuple[tuple[int, int], ...], float] = {}  # moves of the same kind and degree look alike

    def utilisation(workers: Composition) -> float:
        counts = tuple(workers.counts().items())
        if counts not in known:
            known[counts] = spread(report.sizes, report.span_ns, workers, capacity, prefill_time).utilisation
        return known[counts]

    def admits(move: Move) -> bool:
        before, after = utilisation(composition), utilisation(apply(composition, move))
        return _is_fit(move, cause, before, after, thresholds)

    return admits


def _is_fit(move: Move, cause: Cause, before: float, after: float, thresholds: Thresholds) -> bool:
    bound = min(1.0, thresholds.upper)
    if move.kind == "merge":
        return after <= bound
    if before <= bound and after < thresholds.lower:
        return False
    return after < before if cause == "capacity" else after <= bound
