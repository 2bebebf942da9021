"""One candidate, a composition under a policy, simulated on a part of the trace, in a process of its own."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec import structs

from vertumnus.config import RunConfig, to_run_config
from vertumnus.run.capacity import pool_rate
from vertumnus.run.simulated import rare_collections, required_profile
from vertumnus.run.stream import Stream
from vertumnus.run.trial import served
from vertumnus_profiling.size.search import highest_rate
from vertumnus_profiling.tune.objectives import OBJECTIVES, Requests
from vertumnus_profiling.tune.trials import stream_of

SEARCH_REQUESTS = 1_500
"""A rate is judged on the first so many requests of the part."""
FIRST_GUESS = 0.85
"""Of the rate that would keep every worker busy, where the search begins."""
attainment = OBJECTIVES["attainment"].measure


class Sized(NamedTuple):
    """What one candidate does with a part of the trace."""

    requests: Requests
    """At the planned rate, the measured ones."""
    highest_rate: float | None
    """At which it meets the target [req/s]; None: at none, or not asked for."""


def sized(tree: Mapping[str, Any], target: float | None) -> Sized:
    """Simulate the config of *tree* at its rate and, for a *target* attainment, look for its highest one."""
    config = to_run_config(tree)
    stream = stream_of(config)
    requests = _measured(config, stream)
    if target is None:
        return Sized(requests, None)
    head = stream._replace(rows=stream.rows[:SEARCH_REQUESTS])
    guess = FIRST_GUESS * pool_rate(config, required_profile(config), head)

    def meets(rate: float) -> bool:
        at_rate = structs.replace(config, arrival=config.arrival.at_rate(rate))
        return attainment(_measured(at_rate, head)) >= target

    return Sized(requests, highest_rate(meets, guess))


def _measured(config: RunConfig, stream: Stream) -> Requests:
    with rare_collections():
        records = served(config, stream)
    return Requests.of(records, config.records.warmup_requests(len(records)))
