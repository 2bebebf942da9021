"""A trace's numbers and shape as text for a terminal or a pipe."""

from collections.abc import Iterator, Sequence

from vertumnus.domain.wording import counted
from vertumnus.trace.details import LengthBin, TraceDetails
from vertumnus.trace.plausible import duration

BARS = "▁▂▃▄▅▆▇█"
BAR_WIDTH = 24


def trace_text(name: str, details: TraceDetails, remarks: Sequence[str]) -> str:
    """Return what ``vertumnus trace stats`` prints."""
    return "\n".join(
        [name, "", *_numbers(details), "", *_shape(details), *(f"note: {line}" for line in remarks)]
    )


def _numbers(details: TraceDetails) -> Iterator[str]:
    span = duration(round(details.span_s * 1e9))
    rate = f", {(details.requests - 1) / details.span_s:.3g} req/s" if details.span_s else ""
    yield f"requests     {details.requests:,} in {details.span_s:,.3f} s ({span}{rate})"
    yield (
        f"stamps       {counted(details.distinct_timestamps, 'different one')}, "
        f"at most {counted(details.max_same_timestamp, 'request')} at once"
    )
    yield (
        f"input        {counted(details.sum_input_tokens, 'token')}, mean {details.mean_input_tokens:,.2f}, "
        f"P99 {details.p99_input_tokens:,.0f}"
    )
    yield (
        f"output       mean {details.mean_output_tokens:,.2f} tokens, P99 {details.p99_output_tokens:,.0f}; "
        f"{counted(details.one_token_outputs, 'request')} with one token"
    )
    yield (
        f"long         {details.long_request_share:.1%} of the requests have 32,768 tokens or more, "
        f"{details.long_token_share:.1%} of the tokens"
    )
    yield from _reuse(details)


def _reuse(details: TraceDetails) -> Iterator[str]:
    if details.oracle_reuse is None or details.oracle_reuse_partial is None:
        yield "reuse        unknown: the trace has no block ids"
        return
    yield (
        f"reuse        {details.oracle_reuse:.4%} of the tokens with an unlimited cache (whole blocks), "
        f"{details.oracle_reuse_partial:.4%} with partial last blocks"
    )
    full_hits = counted(details.full_hits, "prompt")
    yield f"blocks       {details.distinct_blocks:,} different; {full_hits} hit in full"


def _shape(details: TraceDetails) -> Iterator[str]:
    rates = [bin.requests / bin.length_s for bin in details.over_time]
    low, high = min(rates), max(rates)
    yield f"rate         {_bars(rates)}  {low:.3g} to {high:.3g} req/s, a bar is {details.bin_s:g} s"
    reuse = [bin.oracle_reuse for bin in details.over_time]
    known = [share for share in reuse if share is not None]
    if known:
        yield f"reuse        {_bars(reuse, 1.0)}  {min(known):.1%} to {max(known):.1%}"
    yield ""
    yield "input tokens      requests   tokens"
    start = 0
    for bin in details.lengths:
        yield _length_line(start, bin)
        start = bin.below_tokens or 0
    yield ""
    if details.families:
        yield "hot prefixes      requests"
        for family in details.families:
            yield f"{family.prefix_tokens:>8,} tokens  {family.requests:>8,}  {family.request_share:>7.1%}"
        yield ""


def _length_line(start: int, bin: LengthBin) -> str:
    name = (
        f"{start // 1_024}K+"
        if bin.below_tokens is None
        else f"{start // 1_024}K-{bin.below_tokens // 1_024}K"
    )
    bar = "█" * round(bin.token_share * BAR_WIDTH)
    return f"{name:>12}      {bin.request_share:>8.1%} {bin.token_share:>8.1%}  {bar}".rstrip()


def _bars(values: Sequence[float | None], top: float | None = None) -> str:
    """Return one character a value, the height its share of *top* or of the largest; none for None."""
    top = top or max((value for value in values if value is not None), default=0.0) or 1.0
    return "".join(
        " " if value is None else BARS[min(int(value / top * len(BARS)), len(BARS) - 1)] for value in values
    )
