"""What a config would run, before it runs: for --dry-run."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from vertumnus.config import RunConfig
from vertumnus.domain.units import to_seconds
from vertumnus.domain.wording import counted
from vertumnus.policy.reconfig.initial import Candidate
from vertumnus.run.capacity import pool_rate
from vertumnus.run.initial import Sizing, size
from vertumnus.run.profiles import policy_warning
from vertumnus.run.simulated import required_profile
from vertumnus.run.stream import Stream, arriving, load_stream, threshold_note
from vertumnus.sim.config import SimConfig
from vertumnus.trace.arrivals import describe_arrivals, mean_rate
from vertumnus.trace.history import GivenComposition
from vertumnus.trace.rows import TraceRow

MOST_RANKED = 500
"""Of more compositions than this only the chosen one is told."""


def plan(config: RunConfig) -> str:
    """Return the plan of *config* as text: requests, span, offered load against capacity.

    Raises ConfigError as running it would, except for what only a live start can find.
    """
    sizing = None
    if not isinstance(config.initial, GivenComposition):
        sizing = size(config, config.initial)
        config = sizing.config
    stream = load_stream(config)
    tokens = sum(row.input_tokens for row in stream.rows)
    lines = [
        f"{config.name}: {config.purpose}",
        f"workload   {stream.description}",
        f"requests   {len(stream.rows):,} with {counted(tokens, 'input token')}, blocks of "
        f"{stream.block_tokens}",
        f"pool       {counted(config.cluster.gpus, 'prefill rank')}: {config.cluster.initial_composition()}",
        f"policy     {_tag(config.policy)}, controller {_tag(config.controller)}",
        *_load_lines(config, stream),
        *filter(None, [policy_warning(config), threshold_note(config, stream)]),
    ]
    return "\n".join([*lines, *(_sizing_lines(sizing) if sizing else ())])


def _load_lines(config: RunConfig, stream: Stream) -> list[str]:
    if not isinstance(config.backend, SimConfig):
        wanted = config.arrival.load
        share = _rate_of(config) if wanted is None else f"{wanted:.0%} of the capacity measured at the start"
        return ["backend    live: executed on this machine", f"load       {share}"]
    profile = required_profile(config)
    capacity = pool_rate(config, profile, stream)
    rows = arriving(config, stream, capacity)
    lines = [f"backend    sim: simulated with {profile.model} on {profile.hardware}", _arrivals(config, rows)]
    rate = mean_rate(rows)
    if rate is not None:
        lines.append(
            f"load       {rate:.2f} req/s over {to_seconds(rows[-1].arrival_ns):.0f} s, "
            f"{rate / capacity:.0%} of {capacity:.1f} req/s (every worker busy, unlimited cache)"
        )
    return [*lines, *_pace(config.backend, to_seconds(rows[-1].arrival_ns) if rows else 0.0)]


def _pace(backend: SimConfig, span_s: float) -> list[str]:
    if backend.clock == "fast":
        return []
    speed = backend.speed or 1.0
    return [f"clock      paced at {speed:g}x: arrivals end after {span_s / speed / 60:.1f} min of watching"]


def _rate_of(config: RunConfig) -> str:
    rate = config.arrival.rate
    return "its own rate" if rate is None else f"{rate:.2f} req/s"


def _arrivals(config: RunConfig, rows: Sequence[TraceRow]) -> str:
    return f"arrivals   {describe_arrivals(rows, config.arrival)}"


def _tag(part: Struct) -> str:
    return str(type(part).__struct_config__.tag)


def _sizing_lines(sizing: Sizing) -> Iterator[str]:
    """Yield why the first composition was chosen, and how every other one would have done."""
    yield f"initial    {sizing.reason}"
    compositions = sizing.rule.ranking(MOST_RANKED)
    if compositions is None:
        yield f"           (more than {MOST_RANKED} legal compositions, not ranked one by one)"
        return
    width = max(len(str(each.composition)) for each in compositions)
    yield f"{'':{width}}  capacity  demand  fullest"
    for each in compositions:
        numbers = f"{each.capacity:8.2f}  {each.demand:6.2f}  {each.utilisation:7.0%}"
        chosen = " (chosen)" if each.composition == sizing.choice.composition else ""
        yield f"{each.composition!s:{width}}  {numbers}  {_judged(each)}{chosen}"


def _judged(candidate: Candidate) -> str:
    if candidate.unsuitable:
        return f"unsuitable: {candidate.unsuitable}"
    return "suitable" if candidate.is_enough else "suitable, but has not enough capacity"
