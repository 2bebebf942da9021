"""What no pool can do better than: every prefill at once, at its best degree, with an unlimited cache."""

from typing import NamedTuple

from vertumnus.config import RunConfig
from vertumnus.run.simulated import required_profile
from vertumnus.run.stream import Stream
from vertumnus.trace.blocks import to_requests
from vertumnus.trace.oracle import OracleCache


class Ceiling(NamedTuple):
    """The bound on a trace's TTFT and attainment."""

    mean_ttft_s: float
    attainment: float
    """Token-weighted share whose queue-free TTFT is within target."""


def ceiling(config: RunConfig, stream: Stream) -> Ceiling:
    """Return the bound for *stream* on the degrees of the pool of *config*."""
    profile = required_profile(config)
    model, oracle = profile.prefill_time(), OracleCache(stream.block_tokens)
    degrees = config.cluster.degrees
    total_ns = tokens = met = count = 0
    for request in to_requests(stream.rows, stream.block_tokens, config.slo, config.workload.token_scale):
        cached = oracle.reusable_tokens(request) or 0
        prefill_ns = min(model.predict(degree, request.input_tokens - cached, cached) for degree in degrees)
        ttft_ns = prefill_ns + profile.handoff(request.input_tokens) + round(profile.decode_step_s * 1e9)
        total_ns, count = total_ns + ttft_ns, count + 1
        tokens += request.input_tokens
        met += request.input_tokens if ttft_ns <= (request.ttft_target_ns or 0) else 0
    return Ceiling(total_ns / count / 1e9, met / tokens)
