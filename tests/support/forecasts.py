"""Pools under way, frozen in the middle, and forecasts of them."""

from tests.support.builders import BLOCK_TOKENS, a_cluster, a_control_plane, a_profile
from vertumnus.domain.codec import ORDER, Record
from vertumnus.domain.facts import FirstTokenEmitted, OperatorActed, RequestCancelled
from vertumnus.domain.forecast import ForecastOutcome
from vertumnus.domain.move import Move
from vertumnus.domain.request import Request
from vertumnus.domain.units import SECOND, Nanoseconds
from vertumnus.forecast.question import Assumptions, Question
from vertumnus.records.clock import Clock
from vertumnus.records.reconfigs import Reconfig, ReconfigList
from vertumnus.serving.loop import Loop
from vertumnus.serving.patience import with_patience
from vertumnus.serving.snapshot import take_snapshot
from vertumnus.sim.durations import Durations
from vertumnus.sim.engine import SimEngine
from vertumnus.workers.fleet import Fleet

SWITCH_S = 0.02
POOL = {"composition": {4: 1, 2: 1, 1: 2}, "degrees": (1, 2, 4), "blocks_per_rank": 24}


def assumed(profile=None, patience_ns: Nanoseconds | None = None) -> Assumptions:
    """The times of the builders' profile and pool."""
    cluster = a_cluster()
    return Assumptions(profile or a_profile(), cluster.link, BLOCK_TOKENS, SWITCH_S, patience_ns)


class SimRig:
    """Eight simulated ranks at degrees 1, 2, 4, whose times are exactly the predicted ones."""

    def __init__(self, requests: list[Request], patience_ns: Nanoseconds | None = None) -> None:
        self.requests = requests
        cluster = a_cluster(**POOL)
        self.engine = SimEngine(Durations(a_profile(), 0, 0.0, switch_s=SWITCH_S, block_tokens=BLOCK_TOKENS))
        self.fleet, self.control = Fleet(cluster, BLOCK_TOKENS), a_control_plane(cluster)
        self.records: list[Record] = []
        self.waited_until_ns: dict[int, Nanoseconds] = {}
        """When each request got its first token or was given up."""
        self._told = False
        self._assumed = assumed(patience_ns=patience_ns)
        clients = with_patience(self.engine, self.fleet, patience_ns)
        self.loop = Loop(clients, self.fleet, self.control, self.record)

    def record(self, source, body) -> None:
        self.records.append(Record(source, body))
        if isinstance(body, FirstTokenEmitted | RequestCancelled):
            self.waited_until_ns[body.request_id] = body.at

    def question_at(self, at_ns: Nanoseconds, moves: tuple[Move, ...] = ()) -> Question | None:
        """Serve everything; return what would be asked at *at_ns*, with the arrivals that really come."""
        asked: list[Question] = []

        def look() -> None:
            if not asked and self.engine.now() >= at_ns:
                now = self.engine.now()
                future = tuple(request for request in self.requests if request.arrival_ns > now)
                asked.append(
                    Question(take_snapshot(self.fleet, self.control, now), moves, future, self._assumed)
                )

        self.loop.serve(iter(self.requests), look)
        return asked[0] if asked else None

    def question_now(self, moves: tuple[Move, ...] = ()) -> Question:
        """Return what would be asked now, with the arrivals that really come."""
        now = self.engine.now()
        future = tuple(request for request in self.requests if request.arrival_ns > now)
        return Question(take_snapshot(self.fleet, self.control, now), moves, future, self._assumed)

    def tell_once(self, fact: OperatorActed) -> None:
        """Tell *fact* when its time has come, unless it was told."""
        if not self._told and self.engine.now() >= fact.at:
            self._told = True
            self.loop.take(fact)

    def reconfigs(self) -> list[Reconfig]:
        """Return the transitions that have ended."""
        clock = Clock()
        made = ReconfigList(clock)
        for source, body in self.records:
            if source != ORDER:
                clock.now = body.at
            made.handlers.get(type(body), lambda _: None)(body)
        return made.reconfigs

    def mean_ttft_ns(self, after_ns: Nanoseconds) -> Nanoseconds | None:
        """Return the mean wait of those who waited until after *after_ns* [ns, rounded down]."""
        ttfts = [
            at - self.requests[request_id].arrival_ns
            for request_id, at in self.waited_until_ns.items()
            if at > after_ns
        ]
        return sum(ttfts) // len(ttfts) if ttfts else None


def an_outcome(
    move: Move | None, ttft_s: float | None, served: int = 10, requests: int = 10
) -> ForecastOutcome:
    """A candidate's outcome with a mean TTFT of *ttft_s* [s]."""
    mean = None if ttft_s is None else round(ttft_s * SECOND)
    return ForecastOutcome(move, requests, served, mean, mean, None)
