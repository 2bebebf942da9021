"""Runs of a few requests in virtual time that leave nothing on the disk but are encoded as a log would be."""

from io import StringIO

from rich.console import Console

from vertumnus.config import RunConfig
from vertumnus.domain.codec import Body, Record, encode_batch
from vertumnus.domain.facts import RequestEnded
from vertumnus.domain.units import INT64
from vertumnus.policy.placement import Decision, Observer
from vertumnus.run.initial import settled
from vertumnus.run.stream import Stream, require_servable
from vertumnus.run.trial import serve_unrecorded


def run_encoded(config: RunConfig, stream: Stream) -> int:
    """Serve *stream* as *config* says; return how many requests ended.

    Everything that a log would be told is encoded, and the costs of every placement fit a table. Raises
    ConfigError as a run does before it starts.
    """
    ended = 0

    def record(source: int, body: Body) -> None:
        nonlocal ended
        encode_batch([Record(source, body)])
        if type(body) is RequestEnded:
            assert body.at in INT64
            ended += 1

    config = settled(config, Console(file=StringIO()))
    require_servable(config, stream)
    pool = serve_unrecorded(config, stream, record, Observer(_fits, lambda request_id: True))
    assert not pool.books().problems
    return ended


def _fits(decision: Decision) -> None:
    assert all(cost is None or cost in INT64 for cost in decision.costs)
