"""What follows a prefill, from timings of its two ends: the hand-off is a line in the prompt's length."""

from collections.abc import Sequence
from typing import NamedTuple

from vertumnus.live.bench import DECODE_TOKENS, TailTiming


class Tail(NamedTuple):
    """The part of a TTFT after the prefill, as a profile keeps it."""

    handoff_base_s: float
    handoff_per_token_s: float
    decode_step_s: float


def tail_through(shortest: TailTiming, longest: TailTiming) -> Tail:
    """Return the line through two timings; with two of one length all of the hand-off is its base."""
    more_tokens = longest.input_tokens - shortest.input_tokens
    per_token_s = max(0.0, longest.handoff_s - shortest.handoff_s) / more_tokens if more_tokens else 0.0
    decoding_s = [timing.whole_s - timing.handoff_s for timing in (shortest, longest)]
    return Tail(
        handoff_base_s=max(0.0, shortest.handoff_s - per_token_s * shortest.input_tokens),
        handoff_per_token_s=per_token_s,
        decode_step_s=sum(decoding_s) / len(decoding_s) / DECODE_TOKENS,
    )


def fastest_tail(timings: Sequence[TailTiming]) -> TailTiming:
    """Return the shortest times of *timings* of one length."""
    # each from the job on: the time between two answers is short when the first of them was seen late
    return TailTiming(
        timings[0].input_tokens,
        min(timing.handoff_s for timing in timings),
        min(timing.whole_s for timing in timings),
    )
