"""What a trial is judged by: one number from the measured requests of a slice."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vertumnus.domain.units import SECOND
from vertumnus.records.request_record import RequestRecord

Floats = NDArray[np.float64]


class Requests(NamedTuple):
    """The measured requests of one slice, in order of arrival; arrays of shape (requests,)."""

    ttft_s: Floats
    """Infinite where the request did not finish: a config must not win by losing requests [s]."""
    tokens: Floats
    """Input tokens of requests with a target, 0 of others."""
    met_tokens: Floats
    """Those within target."""

    @classmethod
    def of(cls, records: Sequence[RequestRecord], warmup: int) -> "Requests":
        """Take *records*, in order of arrival, without the first *warmup*."""
        measured = records[warmup:]
        ttfts = [r.ttft_ns / SECOND if _is_finished(r) and r.ttft_ns else np.inf for r in measured]
        tokens = [0 if r.slo_met is None else r.input_tokens for r in measured]
        met = [r.input_tokens if r.slo_met else 0 for r in measured]
        return cls(np.array(ttfts), np.array(tokens, dtype=float), np.array(met, dtype=float))

    def take(self, places: NDArray[np.int64]) -> "Requests":
        """Return the requests at *places*, which may repeat."""
        return Requests(self.ttft_s[places], self.tokens[places], self.met_tokens[places])


class Objective(NamedTuple):
    """A number to make as small, or as large, as possible."""

    measure: Callable[[Requests], float]
    least: bool
    """Whether less is better."""
    unit: str

    def cost(self, requests: Requests) -> float:
        """Return the number so that less is better."""
        value = self.measure(requests)
        return value if self.least else -value

    def show(self, value: float) -> str:
        """Return *value* with its unit."""
        return f"{100 * value:.2f} %" if self.unit == "%" else f"{value:.4f} {self.unit}"


def _mean(requests: Requests) -> float:
    return float(requests.ttft_s.mean())


def _percentile(percent: int) -> Callable[[Requests], float]:
    def measure(requests: Requests) -> float:
        ordered = np.sort(requests.ttft_s)
        # numpy would make inf - inf of an interpolation between two unfinished requests
        place = (len(ordered) - 1) * percent / 100
        lower, upper = ordered[int(place)], ordered[int(np.ceil(place))]
        return float(lower if lower == upper else lower + (upper - lower) * (place - int(place)))

    return measure


def _attainment(requests: Requests) -> float:
    total = float(requests.tokens.sum())
    return float(requests.met_tokens.sum()) / total if total else float("nan")


def _is_finished(record: RequestRecord) -> bool:
    return record.status == "finished"


OBJECTIVES: Mapping[str, Objective] = {
    "mean_ttft": Objective(_mean, least=True, unit="s"),
    "p50_ttft": Objective(_percentile(50), least=True, unit="s"),
    "p90_ttft": Objective(_percentile(90), least=True, unit="s"),
    "p99_ttft": Objective(_percentile(99), least=True, unit="s"),
    "attainment": Objective(_attainment, least=False, unit="%"),
}
