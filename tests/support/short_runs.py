"""Runs of a few requests in virtual time that leave nothing on the disk but are encoded as a log would be."""

from io import StringIO

from rich.console import Console

from vertumnus.config import RunConfig
from vertumnus.domain.codec import Body, Record, encode_batch
from vertumnus.domain.units import INT64
from vertumnus.policy.placement import Decision, Observer
from vertumnus.run.feed import feed_of
from vertumnus.run.forecasting import assumptions, forecasts
from vertumnus.run.initial import settled
from vertumnus.run.pool import build_pool
from vertumnus.run.session import schedule_script
from vertumnus.run.simulated import required_profile, simulated_requests, virtual_engine
from vertumnus.run.stream import Stream, require_servable
from vertumnus.serving.loop import Loop
from vertumnus.sim.config import SimConfig


def run_encoded(config: RunConfig, stream: Stream) -> int:
    """Serve *stream* as *config* says; return how many requests ended.

    Everything that a log would be told is encoded, and the costs of every placement fit a table. Raises
    ConfigError as a run does before it starts.
    """
    assert isinstance(config.backend, SimConfig)
    profile = required_profile(config)
    config = settled(config, Console(file=StringIO()))
    require_servable(config, stream)
    requests = simulated_requests(config, profile, stream)
    engine = virtual_engine(config, config.backend, profile, stream.block_tokens)
    longest = max(request.input_tokens for request in requests)
    observer = Observer(_fits, lambda request_id: True)
    pool = build_pool(config, profile, stream.block_tokens, longest, observer)

    def record(source: int, body: Body) -> None:
        encode_batch([Record(source, body)])

    schedule_script(config.controller, engine)
    assumed = assumptions(config, profile, stream.block_tokens, ())
    feed = feed_of(config, stream, requests)
    with forecasts(config, pool, engine, lambda: assumed) as forecast:
        loop = Loop(engine, pool.fleet, pool.control, record, forecast, feed.follow_ups)
        loop.serve(iter(feed.arrivals))
    assert not pool.books().problems and engine.now() in INT64
    return loop.ended


def _fits(decision: Decision) -> None:
    assert all(cost is None or cost in INT64 for cost in decision.costs)
