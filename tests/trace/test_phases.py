"""Phases of one rate and mix each: lengths, arrivals and prefixes."""

import pytest

from vertumnus.domain.errors import ConfigError
from vertumnus.domain.units import SECOND
from vertumnus.trace.phases import Phase, phased
from vertumnus.trace.rows import TraceRow
from vertumnus.trace.tool_agent import tool_agent

PHASES = (
    Phase(duration_s=20, rate=40, long_share=0.0, long_tokens=4_096),
    Phase(duration_s=30, rate=4, long_share=1.0, long_tokens=49_152),
    Phase(duration_s=20, rate=40, long_share=0.0, long_tokens=4_096),
    Phase(duration_s=50, rate=40, long_share=0.3, long_tokens=16_384),
    Phase(duration_s=10, rate=10),
)


def by_phase(rows: list[TraceRow]) -> list[list[TraceRow]]:
    """Return the rows of each of PHASES."""
    parts, start = [], 0.0
    for phase in PHASES:
        end = start + phase.duration_s
        parts.append([row for row in rows if start * SECOND <= row.arrival_ns < end * SECOND])
        start = end
    return parts


@pytest.mark.parametrize("seed", [0, 1])
def test_each_phase_has_the_lengths_that_it_asks_for(seed: int) -> None:
    """What one phase passed over is judged by the bound of the phase that takes it."""
    short, long, again, mixed, _any = by_phase(phased(PHASES, seed))
    assert all(row.input_tokens < 4_096 for row in (*short, *again))
    assert all(row.input_tokens >= 49_152 for row in long)
    share = sum(row.input_tokens >= 16_384 for row in mixed) / len(mixed)
    assert share == pytest.approx(0.3, abs=0.05)  # 2,000 rows: five standard errors


@pytest.mark.parametrize("seed", [0, 1])
def test_each_phase_has_its_rate(seed: int) -> None:
    """Counts are within five standard errors of rate times duration, arrivals in order."""
    rows = phased(PHASES, seed)
    assert rows == sorted(rows, key=lambda row: row.arrival_ns)
    for phase, part in zip(PHASES, by_phase(rows), strict=True):
        expected = phase.rate * phase.duration_s
        assert len(part) == pytest.approx(expected, abs=5 * expected**0.5)


def test_no_row_is_served_twice() -> None:
    """A row that was passed over and taken later is gone."""
    ids = [row.block_ids[-1] for row in phased(PHASES, 0) if row.block_ids and row.input_tokens % 512]
    assert len(set(ids)) == len(ids)  # a partial last block is its request's own


def test_seeds_side_by_side_share_no_requests() -> None:
    """Where a seed's trace is used up another one follows, not the neighbour's."""
    own, next_one = tool_agent(1), tool_agent(2)
    rows = phased((Phase(duration_s=len(own) / 280, rate=300),), 1)
    beyond = [(row.input_tokens, row.output_tokens) for row in rows[len(own) :]]
    assert len(beyond) > 500
    assert beyond != [(row.input_tokens, row.output_tokens) for row in next_one[: len(beyond)]]


@pytest.mark.parametrize(
    ("long_share", "long_tokens", "said"),
    [(0.5, 10**9, "found 1000000000, but no request of the generator has so many"),
     (0.5, 1, "found 1, but no request of the generator is shorter")],
)  # fmt: skip
def test_lengths_that_no_request_has_are_refused(long_share: float, long_tokens: int, said: str) -> None:
    """The generator would be looked through for ever."""
    phases = (Phase(duration_s=20, rate=4, long_share=long_share, long_tokens=long_tokens),)
    with pytest.raises(ConfigError, match=said):
        phased(phases, 0)


def test_more_requests_than_memory_holds_are_refused() -> None:
    """A rate is bounded by the length of its phase, in time and in requests."""
    assert Phase(duration_s=1000, rate=10_000).rate == 10_000
    with pytest.raises(ValueError, match=r"rate must be at most 10000 for a phase of 1000 s .* got 10001"):
        Phase(duration_s=1000, rate=10_001)
