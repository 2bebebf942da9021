"""What a trace looks like: rate and reuse over time, mix of lengths, hot prefixes."""

from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from vertumnus.domain.units import SECOND, Tokens, to_seconds
from vertumnus.trace.families import Family, families
from vertumnus.trace.stats import Columns, TraceStats, stats_of

MOST_BINS = 48
BIN_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 21_600, 43_200, 86_400)
"""Lengths that a bin of time may have; the smallest that needs at most MOST_BINS, else whole days [s]."""
BOUNDS: tuple[Tokens, ...] = (1_024, 4_096, 8_192, 16_384, 32_768, 65_536)
"""Where the mix of lengths is cut, exclusive; 32,768 is where long prompts begin."""
LONG: Tokens = 32_768


class TimeBin(Struct, frozen=True, kw_only=True):
    """A stretch of the trace."""

    start_s: float
    """From the first request [s]."""
    length_s: float
    """Of the last bin, what the trace has of it [s]."""
    requests: int
    input_tokens: Tokens
    oracle_reuse: float | None
    """Of its tokens, those that an unlimited cache holds; None: no request, or no ids."""


class LengthBin(Struct, frozen=True, kw_only=True):
    """Prompts of a range of lengths, from the bin before it on."""

    below_tokens: Tokens | None
    """None: all longer ones."""
    request_share: float
    token_share: float


class TraceDetails(TraceStats, frozen=True, kw_only=True):
    """A trace's numbers and what it looks like."""

    long_request_share: float
    """Requests of at least 32,768 tokens, of all requests."""
    long_token_share: float
    """Their tokens, of all input tokens."""
    bin_s: float
    """Length of a bin of time [s]."""
    over_time: tuple[TimeBin, ...]
    lengths: tuple[LengthBin, ...]
    families: tuple[Family, ...]


def details_of(columns: Columns) -> TraceDetails:
    """Return numbers and shape of the rows in *columns*, of which there is at least one."""
    stats = stats_of(columns)
    inputs = columns.input_tokens
    is_long = inputs >= LONG
    bin_s = _bin_s(stats.span_s)
    return TraceDetails(
        **{name: getattr(stats, name) for name in TraceStats.__struct_fields__},
        long_request_share=float(is_long.mean()),
        long_token_share=float(inputs[is_long].sum() / inputs.sum()),
        bin_s=bin_s,
        over_time=tuple(_over_time(columns, bin_s)),
        lengths=tuple(_lengths(columns)),
        families=tuple(families(columns)),
    )


def _bin_s(span_s: float) -> float:
    fitting = (length for length in BIN_S if span_s < MOST_BINS * length)
    days = int(span_s // (MOST_BINS * 86_400)) + 1
    return float(next(fitting, days * 86_400))


def _over_time(columns: Columns, bin_s: float) -> Iterator[TimeBin]:
    since = columns.arrivals - columns.arrivals[0]
    place = since // int(bin_s * SECOND)
    requests = np.bincount(place)
    tokens = np.bincount(place, weights=columns.input_tokens)
    cached = np.bincount(place, weights=columns.cached_tokens)
    is_known = columns.known_tokens > 0
    end_s = to_seconds(int(since[-1]))
    for number, count in enumerate(requests.tolist()):
        yield TimeBin(
            start_s=number * bin_s,
            length_s=min(bin_s, end_s - number * bin_s) or bin_s,
            requests=count,
            input_tokens=int(tokens[number]),
            oracle_reuse=float(cached[number] / tokens[number]) if count and is_known else None,
        )


def _lengths(columns: Columns) -> Iterator[LengthBin]:
    inputs = columns.input_tokens
    place = np.searchsorted(BOUNDS, inputs, side="right")
    requests = np.bincount(place, minlength=len(BOUNDS) + 1) / len(inputs)
    tokens = np.bincount(place, weights=inputs, minlength=len(BOUNDS) + 1) / inputs.sum()
    for number, bound in enumerate((*BOUNDS, None)):
        yield LengthBin(
            below_tokens=bound, request_share=float(requests[number]), token_share=float(tokens[number])
        )
