"""How well Eq. 2 predicts this run's steps, by degree, and whether that drifts."""

from collections import deque
from collections.abc import Sequence

from msgspec import Struct, field

from vertumnus.domain.facts import RequestArrived, RequestEnded, StepFailed, StepFinished, StepStarted
from vertumnus.domain.prefill_time import PrefillTimeModel
from vertumnus.domain.units import JobId, Nanoseconds, RequestId, Tokens
from vertumnus.records.metrics import percentile_s
from vertumnus.records.timeline import Handlers

RECENT_STEPS = 200
"""Steps of each degree that "recent" means."""


class Fit(Struct, frozen=True):
    """Actual over predicted step times at one degree."""

    degree: int
    steps: int
    mean_error: float
    """Mean of |actual - predicted| / predicted over all steps."""
    recent_bias: float
    """Mean of (actual - predicted) / predicted over the recent steps; above 0, steps take longer."""
    recent_p90: float
    """90th percentile of |actual - predicted| / predicted over the recent steps."""
    errors: tuple[float, ...]
    """The recent (actual - predicted) / predicted, oldest first."""

    @property
    def has_drifted(self) -> bool:
        """Whether the recent bias is more than the error that the model has anyway."""
        return self.steps >= 20 and abs(self.recent_bias) > max(0.05, self.mean_error)


class _Degree(Struct):
    steps: int = 0
    error_sum: float = 0.0
    recent: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT_STEPS))

    def add(self, error: float) -> None:
        self.steps += 1
        self.error_sum += abs(error)
        self.recent.append(error)


class Residuals:
    """Fold of steps into `Fit`s; what is compared is the model alone, as the ledger uses it."""

    def __init__(self, prefill_time: PrefillTimeModel) -> None:
        self.handlers: Handlers = {
            RequestArrived: self._arrived,
            RequestEnded: self._ended,
            StepStarted: self._started,
            StepFinished: self._finished,
            StepFailed: self._failed,
        }
        self._prefill_time = prefill_time
        self._lengths: dict[RequestId, Tokens] = {}
        self._predicted: dict[JobId, Nanoseconds] = {}
        self._degrees: dict[int, _Degree] = {}

    def fits(self) -> tuple[Fit, ...]:
        """Return the fit of every degree that ran a step, ascending."""
        return tuple(_fit(degree, self._degrees[degree]) for degree in sorted(self._degrees))

    def _arrived(self, fact: RequestArrived) -> None:
        self._lengths[fact.request.request_id] = fact.request.input_tokens

    def _ended(self, fact: RequestEnded) -> None:
        self._lengths.pop(fact.request_id, None)

    def _started(self, fact: StepStarted) -> None:
        sizes = [
            (self._lengths[item.request_id] - item.cached_tokens, item.cached_tokens) for item in fact.items
        ]
        self._predicted[fact.step_id] = sum(self._prefill_time.step_shares(fact.worker.degree, sizes))

    def _finished(self, fact: StepFinished) -> None:
        predicted = self._predicted.pop(fact.step_id, 0)
        if predicted > 0:
            degree = self._degrees.setdefault(fact.worker.degree, _Degree())
            degree.add((fact.compute_ns - predicted) / predicted)

    def _failed(self, fact: StepFailed) -> None:
        self._predicted.pop(fact.step_id, None)


def _fit(degree: int, seen: _Degree) -> Fit:
    return Fit(
        degree=degree,
        steps=seen.steps,
        mean_error=seen.error_sum / seen.steps,
        recent_bias=sum(seen.recent) / len(seen.recent),
        recent_p90=_percentile(sorted(map(abs, seen.recent)), 90),
        errors=tuple(seen.recent),
    )


def _percentile(ascending: Sequence[float], percent: int) -> float:
    scaled = [round(error * 1e9) for error in ascending]
    return percentile_s(scaled, percent) or 0.0
