"""The rows of a run before it is known how fast they come, and what cannot be served of them."""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from vertumnus.config import RunConfig
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.request import Request, blocks_for
from vertumnus.domain.units import Tokens
from vertumnus.domain.wording import counted
from vertumnus.policy.config import StaticPolicy
from vertumnus.run.extent import extent_problems
from vertumnus.trace.arrivals import mean_rate, with_arrivals
from vertumnus.trace.config import ArrivalConfig
from vertumnus.trace.load import LoadedTrace, load_rows
from vertumnus.trace.rows import TraceRow
from vertumnus.trace.sessions import predecessors

Stream: TypeAlias = LoadedTrace
"""A workload at its trace's own times."""
SAME_PACE = 1.25
"""Rates that differ by less than this factor pass for one."""


def load_stream(config: RunConfig) -> Stream:
    """Read or generate the workload of *config*.

    Raises ConfigError when it cannot be had, holds requests that this pool could never serve, or cannot
    arrive as asked.
    """
    stream = read_stream(config)
    require_servable(config, stream)
    return stream


def read_stream(config: RunConfig) -> Stream:
    """Read or generate the workload of *config*. Raises ConfigError when it cannot be had."""
    return load_rows(config.workload, ArrivalConfig(), config.seed)


def require_servable(config: RunConfig, stream: Stream) -> None:
    """Raise ConfigError when the pool of *config* could not serve *stream*, or it cannot arrive as asked."""
    stream.require_times(config.arrival)
    if config.arrival.closed_loop and not any(
        before is not None for before in predecessors_of(config, stream)
    ):
        raise ConfigError(
            f"arrival.closed_loop: found true, but no request of {stream.description} continues another"
        )
    problems = list(_unservable(config, stream.rows, stream.block_tokens))
    if problems:
        raise ConfigError(*problems)
    rows = arriving(config, stream, 1.0)
    span_ns = 0 if config.arrival.load is not None else rows[-1].arrival_ns  # of a load not known yet
    problems = list(extent_problems(config, rows, span_ns))
    if problems:
        raise ConfigError(*problems)


def predecessors_of(config: RunConfig, stream: Stream) -> list[int | None]:
    """Return for each row of *stream* the place of the one that it continues; a generator names its own."""
    if config.workload.path is None and not any(row.follows for row in stream.rows):
        return [None] * len(stream.rows)
    return predecessors(stream.rows, stream.block_tokens)


def arriving(config: RunConfig, stream: Stream, capacity: float) -> list[TraceRow]:
    """Return the rows at the times that ``arrival`` asks for; a load is a share of *capacity* [req/s]."""
    arrival = config.arrival
    if arrival.load is not None:
        arrival = arrival.at_rate(arrival.load * capacity)
    return with_arrivals(stream.rows, arrival, config.seed)


def pace_note(
    config: RunConfig, stream: Stream, arrivals: Sequence[TraceRow] | Sequence[Request]
) -> str | None:
    """Return that *arrivals* come at another rate than the trace file's own; None where they do not."""
    own, offered = mean_rate(stream.rows), mean_rate(arrivals)
    if config.workload.path is None or own is None or offered is None:
        return None
    if max(own / offered, offered / own) < SAME_PACE:
        return None
    return f"requests come at {offered:.3g} req/s, the trace's own rate is {own:.3g}: arrival=trace keeps it"


def threshold_note(config: RunConfig, stream: Stream) -> str | None:
    """Return that policy=static sends every prompt of *stream* to the largest degree; None where not."""
    if not isinstance(config.policy, StaticPolicy):
        return None
    threshold, shortest = config.policy.length_threshold, min(row.input_tokens for row in stream.rows)
    if threshold >= shortest:
        return None
    return (
        f"note: policy.length_threshold: found {threshold}, has no effect: the shortest prompt has "
        f"{counted(shortest, 'token')}, so all go to the largest degree"
    )


def _unservable(config: RunConfig, rows: Sequence[TraceRow], block_tokens: Tokens) -> Iterator[str]:
    cluster = config.cluster
    longest = max(rows, key=lambda row: row.input_tokens)
    place = rows.index(longest)
    needed = blocks_for(longest.input_tokens, block_tokens)
    largest = max(degree for degree, count in cluster.composition.items() if count > 0)
    if needed > largest * cluster.blocks_per_rank:
        yield (
            f"cluster.blocks_per_rank: found {cluster.blocks_per_rank}; request {place} has "
            f"{counted(longest.input_tokens, 'token')} = {counted(needed, 'block')} of {block_tokens}, "
            f"and the largest worker "
            f"(degree {largest}) holds {largest * cluster.blocks_per_rank}; "
            f"must be at least {-(-needed // largest)}"
        )
    sequence = max(row.input_tokens + row.output_tokens for row in rows)
    if sequence > cluster.decode.tokens_per_rank:
        yield (
            f"cluster.decode.tokens_per_rank: found {cluster.decode.tokens_per_rank}, must be at least "
            f"{sequence}, the longest prompt with its output"
        )
    policy = config.policy
    if isinstance(policy, StaticPolicy) and policy.length_threshold >= longest.input_tokens:
        shortest = min(row.input_tokens for row in rows)
        yield (
            f"policy.length_threshold: found {policy.length_threshold}, but prompts have {shortest} to "
            f"{counted(longest.input_tokens, 'token')}, so none would go to the largest degree; "
            f"must be below {longest.input_tokens}"
        )
    if config.model is not None and sequence > config.model.max_position:
        yield (
            f"model.max_position: found {config.model.max_position}, must be at least {sequence}, "
            "the longest prompt with its output (workload.token_scale makes prompts shorter)"
        )
