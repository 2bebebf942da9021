"""A simulated run that leaves nothing on the disk: for programs that compare many of them."""

from io import StringIO

from rich.console import Console

from vertumnus.config import RunConfig
from vertumnus.domain.errors import ConfigError
from vertumnus.policy.placement import Observer
from vertumnus.records.request_record import RequestRecord
from vertumnus.records.timeline import Timeline
from vertumnus.run.feed import feed_of, patience_ns
from vertumnus.run.forecasting import assumptions, forecasts
from vertumnus.run.initial import settled
from vertumnus.run.pool import Pool, build_pool
from vertumnus.run.session import schedule_script
from vertumnus.run.simulated import required_profile, simulated_requests, virtual_engine
from vertumnus.run.stream import Stream, load_stream
from vertumnus.serving.loop import Loop, Record
from vertumnus.serving.patience import with_patience
from vertumnus.sim.config import SimConfig


def served(config: RunConfig, stream: Stream | None = None) -> list[RequestRecord]:
    """Run *config* in virtual time and return its requests, in order of arrival.

    They are those of a recorded run, whatever ``records`` and ``backend.clock`` say. *stream*, if given,
    stands for the workload. Callers with many runs put them under `rare_collections`. Raises ConfigError
    as a run does.
    """
    config = settled(config, Console(file=StringIO()))
    stream = stream or load_stream(config)
    timeline = Timeline(stream.block_tokens, live=False)

    def record(_source: int, body: object) -> None:
        handle = timeline.handlers.get(type(body))
        if handle is not None:
            handle(body)

    serve_unrecorded(config, stream, record)
    return sorted(timeline.records, key=lambda record: record.request_id)


def serve_unrecorded(
    config: RunConfig, stream: Stream, record: Record, observer: Observer | None = None
) -> Pool:
    """Serve *stream* in virtual time as *config*, its composition settled, says; return the pool at the end.

    All that a log would be told goes to *record*, every placement to *observer*. Raises ConfigError.
    """
    backend = config.backend
    if not isinstance(backend, SimConfig):
        raise ConfigError("backend: found live, but a trial is simulated; use backend=sim")
    profile = required_profile(config)
    requests = simulated_requests(config, profile, stream)
    engine = virtual_engine(config, backend, profile, stream.block_tokens)
    longest = max((request.input_tokens for request in requests), default=None)
    pool = build_pool(config, profile, stream.block_tokens, longest, observer)
    schedule_script(config.controller, engine)
    assumed = assumptions(config, profile, stream.block_tokens, ())
    feed = feed_of(config, stream, requests)
    with forecasts(config, pool, engine, lambda: assumed) as forecast:
        clients = with_patience(engine, pool.fleet, patience_ns(config))
        loop = Loop(clients, pool.fleet, pool.control, record, forecast, feed.follow_ups)
        loop.serve(iter(feed.arrivals))
    return pool
