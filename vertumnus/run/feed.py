"""What a run sends: everything at its own time, or follow-ups only after the answer before them."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from vertumnus.config import RunConfig
from vertumnus.domain.request import Request
from vertumnus.domain.units import Nanoseconds, RequestId, to_ns
from vertumnus.run.stream import Stream, predecessors_of
from vertumnus.serving.follow_ups import FollowUp, FollowUps


class Feed(NamedTuple):
    """The requests of a run by how they come."""

    arrivals: Sequence[Request]
    """At their own times, in order."""
    follow_ups: FollowUps
    """After the request that each continues."""


def feed_of(config: RunConfig, stream: Stream, requests: Sequence[Request]) -> Feed:
    """Return how *requests*, one for each row of *stream*, are sent."""
    if not config.arrival.closed_loop:
        return Feed(requests, FollowUps({}))
    arrivals: list[Request] = []
    after: defaultdict[RequestId, list[FollowUp]] = defaultdict(list)
    for request, row, before in zip(requests, stream.rows, predecessors_of(config, stream), strict=True):
        if before is None:
            arrivals.append(request)
        else:
            after[before].append(FollowUp(request, row.pause_ns or 0))
    return Feed(arrivals, FollowUps(after))


def patience_ns(config: RunConfig) -> Nanoseconds | None:
    """Return how long clients of *config* wait for a first token [ns]; None where they wait for ever."""
    patience_s = config.arrival.patience_s
    return None if patience_s is None else to_ns(patience_s)
