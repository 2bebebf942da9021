"""Whether a run's numbers may be used: VALID, or INVALID and why."""

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from vertumnus.domain.units import Blocks, Nanoseconds
from vertumnus.domain.wording import counted
from vertumnus.records.metrics import Metrics

SEND_LAG_FLOOR_S = 0.1
SEND_LAG_SHARE = 0.05
"""A live run's p99 send lag may reach the larger of the floor and this share of the mean TTFT."""


class Books(Struct, frozen=True):
    """What is left over when every request has ended; nothing but resident blocks may be."""

    ledger_ns: Nanoseconds
    """Predicted work still reserved, over all workers."""
    pinned_blocks: Blocks
    blocks_in_use: Blocks
    """Slots that are not free."""
    blocks_held: Blocks
    """Slots that the workers' cache indexes account for."""
    problems: tuple[str, ...] = ()
    """Whatever else did not add up."""


class Verdict(Struct, frozen=True):
    """The judgement and, when INVALID, its reasons."""

    verdict: Literal["VALID", "INVALID"]
    reasons: tuple[str, ...]


def judge(
    metrics: Metrics,
    books: Books | None,
    problems: tuple[str, ...] = (),
    *,
    is_interrupted: bool = False,
) -> Verdict:
    """Judge a run by its *metrics*, its *books* and the *problems* of its folds.

    *books* is None for a run that was killed: it left none, which is a reason by itself. One that
    *is_interrupted* stands between two events, with the work of open requests in its books: of them
    only the problems count.
    """
    if is_interrupted and books is not None:
        ended = [f"interrupted with {counted(metrics.interrupted, 'request')} open", *books.problems]
    else:
        ended = [*_end_reasons(metrics), *_book_reasons(books)]
    reasons = (*ended, *_metric_reasons(metrics), *problems)
    return Verdict("INVALID" if reasons else "VALID", reasons)


def _end_reasons(metrics: Metrics) -> Iterator[str]:
    if metrics.requests == 0:
        yield "no request arrived"
    if metrics.interrupted:
        yield f"{metrics.interrupted} of {counted(metrics.requests, 'request')} did not end"


def _metric_reasons(metrics: Metrics) -> Iterator[str]:
    if metrics.cached_tokens > metrics.input_tokens:
        yield (
            f"{counted(metrics.cached_tokens, 'cached token')} exceed "
            f"{counted(metrics.input_tokens, 'input token')}"
        )
    limit = max(SEND_LAG_FLOOR_S, SEND_LAG_SHARE * (metrics.ttft_mean_s or 0.0))
    if metrics.send_lag_p99_s is not None and metrics.send_lag_p99_s > limit:
        yield (
            f"p99 send lag {metrics.send_lag_p99_s * 1e3:.0f} ms is above {limit * 1e3:.0f} ms: "
            "requests were sent late"
        )


def _book_reasons(books: Books | None) -> Iterator[str]:
    if books is None:
        yield "the run ended without closing its books"
        return
    if books.ledger_ns:
        yield f"{books.ledger_ns} ns of predicted work stayed reserved"
    if books.pinned_blocks:
        yield f"{counted(books.pinned_blocks, 'block')} stayed pinned"
    if books.blocks_in_use != books.blocks_held:
        yield f"{counted(books.blocks_in_use, 'block')} in use, but {books.blocks_held} held by the caches"
    yield from books.problems
