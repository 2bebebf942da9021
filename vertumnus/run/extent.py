"""Whether the times of a run can be told: what its numbers add up to, found before anything starts.

A log and a table hold whole nanoseconds in 64 bits, 292 years. Each cost of the profile and the link is
held against `LONGEST_S` as if all requests paid it in full, one after the other: no queue, however the
requests are placed, is longer than all of these together.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import exp
from typing import NamedTuple

from msgspec import structs

from vertumnus.config import RunConfig
from vertumnus.domain.prefill_time import (
    Coefficients,
    DegreeCoefficients,
    PrefillTimeModel,
    attention_work,
)
from vertumnus.domain.profile import ModelProfile
from vertumnus.domain.units import Nanoseconds, to_seconds
from vertumnus.domain.wording import counted
from vertumnus.policy.config import PaperPolicy, PolicyConfig, VertumnusPolicy
from vertumnus.policy.reconfig.config import Thresholds, WhatIfController
from vertumnus.sim.config import SimConfig
from vertumnus.trace.arrivals import LONGEST_S
from vertumnus.trace.rows import TraceRow

MOST_TIMERS = 5_000_000
"""Scans, or windows, of one run: ten minutes of simulating, and half a gigabyte of log."""
NOISE_SIGMAS = 4.0
"""No factor that is drawn for a simulated prefill lies further from the median than this."""


class _Work(NamedTuple):
    """What the requests of a run are together, none of them cached."""

    requests: int
    input_tokens: int
    output_tokens: int
    pairs: int
    """Query-key pairs."""

    @classmethod
    def of(cls, rows: Sequence[TraceRow]) -> "_Work":
        return cls(
            len(rows),
            sum(row.input_tokens for row in rows),
            sum(row.output_tokens for row in rows),
            sum(attention_work(row.input_tokens, 0) for row in rows),
        )


class _Cost(NamedTuple):
    """One number of a config and the time that comes of it."""

    key: str
    found: float
    amount: float
    """What the number is multiplied by, or divides [1/its unit, in seconds]."""
    what: str
    """What takes that time."""
    is_rate: bool = False
    """Whether the number divides."""

    @property
    def seconds(self) -> float:
        if not self.is_rate:
            return self.found * self.amount
        return self.amount / self.found

    def problem(self) -> str:
        bound = self.amount / LONGEST_S if self.is_rate else LONGEST_S / self.amount
        allowed = f"at {'least' if self.is_rate else 'most'} {bound:.3g}"
        return (
            f"{self.key}: found {self.found:g}, which makes {self.seconds:.3g} s of the {self.what}; "
            f"must be {allowed}, which makes {LONGEST_S:g} s"
        )


def extent_problems(config: RunConfig, rows: Sequence[TraceRow], span_ns: Nanoseconds) -> Iterator[str]:
    """Yield each number of *config* with which *rows* would take longer than can be told, or waited for.

    *span_ns* is from the first arrival to the last, 0 while that is not known.
    """
    yield from (cost.problem() for cost in _costs(config, rows, span_ns) if cost.seconds > LONGEST_S)
    yield from _timer_problems(config, rows, to_seconds(span_ns))


def _costs(config: RunConfig, rows: Sequence[TraceRow], span_ns: Nanoseconds) -> Iterator[_Cost]:
    work, profile, model, link = _Work.of(rows), config.profile, config.model, config.cluster.link
    if profile is not None:
        yield from _profile_costs(config, profile, work)
        yield from _weighted(config.policy, profile.prefill_time(), config.cluster.degrees, rows)
        if isinstance(config.policy, VertumnusPolicy):
            span_s = to_seconds(span_ns)
            yield _Cost("policy.ageing", config.policy.ageing, span_s, "last request's place in a queue")
        yield from _capacities(config, profile)
    token_bytes = profile.kv_bytes_per_token if profile else model.kv_bytes_per_token if model else 0
    copies = f"copies of {counted(work.requests, 'prompt')}"
    yield _Cost("cluster.link.latency_s", link.latency_s, work.requests, copies)
    payload = work.input_tokens * token_bytes
    yield _Cost("cluster.link.bytes_per_s", link.bytes_per_s, payload, copies, is_rate=True)


def _profile_costs(config: RunConfig, profile: ModelProfile, work: _Work) -> Iterator[_Cost]:
    requests = counted(work.requests, "request")
    sigma = config.backend.noise_sigma if isinstance(config.backend, SimConfig) else 0.0
    noise, amounts = exp(NOISE_SIGMAS * sigma), _amounts(work, config.cluster.degrees)
    for name, coefficients in _coefficients(profile):
        for key, found in structs.asdict(coefficients).items():
            yield _Cost(f"profile.{name}.{key}", found, amounts[key] * noise, f"prefills of {requests}")
    handoffs = f"hand-offs of {requests}"
    yield _Cost("profile.handoff_base_s", profile.handoff_base_s, work.requests, handoffs)
    yield _Cost("profile.handoff_per_token_s", profile.handoff_per_token_s, work.input_tokens, handoffs)
    outputs = f"outputs of {requests}"
    yield _Cost("profile.decode_step_s", profile.decode_step_s, work.output_tokens, outputs)


def _coefficients(profile: ModelProfile) -> Iterator[tuple[str, Coefficients | DegreeCoefficients]]:
    """Yield name and coefficients of what the predictions of *profile* are made of (Eq. 2)."""
    if profile.form == "per_degree":
        for degree, own in (profile.per_degree or {}).items():
            yield f"per_degree.{degree}", own
    if profile.form == "published" and profile.published is not None:
        yield "published", profile.published
    else:
        yield "prefill", profile.prefill


def _amounts(work: _Work, degrees: Sequence[int]) -> Mapping[str, float]:
    """Return how often *work* pays each coefficient, at the degree of *degrees* at which that is most."""
    least, doublings = min(degrees), max(degrees).bit_length() - 1
    return {
        "startup_s": work.requests,
        "per_uncached_s": work.input_tokens,
        "per_cached_s": work.input_tokens,
        "divided_per_uncached_s": work.input_tokens / least,
        "divided_per_pair_s": work.pairs / least,
        "per_doubling_s": work.requests * doublings,
        "per_pair_s": work.pairs,
        "per_prefix_s": work.requests,
    }


def _weighted(
    policy: PolicyConfig, time: PrefillTimeModel, degrees: Sequence[int], rows: Sequence[TraceRow]
) -> Iterator[_Cost]:
    if not isinstance(policy, VertumnusPolicy | PaperPolicy):
        return
    longest = max(row.input_tokens for row in rows)
    alone_s = max(to_seconds(time.predict(degree, longest, 0)) for degree in degrees)
    yield _Cost("policy.beta", policy.beta, alone_s, "cost of the longest prompt")
    gpu_s = max(degrees) * alone_s
    yield _Cost("policy.gpu_time_weight", policy.gpu_time_weight, gpu_s, "cost of the longest prompt")


def _capacities(config: RunConfig, profile: ModelProfile) -> Iterator[_Cost]:
    if not isinstance(config.controller, Thresholds):
        return
    for degree, kappa in (profile.capacity or {}).items():
        window_s = config.controller.window_s * (config.cluster.gpus // degree)
        for workers, found in kappa.items() if isinstance(kappa, dict) else [(None, kappa)]:
            key = f"profile.capacity.{degree}" if workers is None else f"profile.capacity.{degree}.{workers}"
            yield _Cost(key, found, window_s, "capacity of a window")


def _timer_problems(config: RunConfig, rows: Sequence[TraceRow], span_s: float) -> Iterator[str]:
    """Yield each timer that would fire more than `MOST_TIMERS` times.

    Every scan and every window is a record of its own, with nothing to look at, too: a run that spans years
    is refused and not shortened.
    """
    if config.profile is not None:
        after = config.profile.handoff(rows[-1].input_tokens)
        span_s += to_seconds(after) + config.profile.decode_step_s * rows[-1].output_tokens
    timers = {"cache.scan_interval_s": (config.cache.scan_interval_s, "prefix scans")}
    if isinstance(config.controller, Thresholds | WhatIfController):
        timers["controller.window_s"] = (config.controller.window_s, "windows")
    for key, (found, what) in timers.items():
        if span_s > found * MOST_TIMERS:
            yield (
                f"{key}: found {found:g}, which makes {span_s / found:,.0f} {what} in the {span_s:.3g} s "
                f"that requests take to come and be served; must be at least {span_s / MOST_TIMERS:.3g}"
            )
