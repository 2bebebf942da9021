"""Who answers a run's Forecast orders: the run itself in virtual time, a process beside a live one."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from statistics import median

from vertumnus.config import RunConfig
from vertumnus.domain.profile import ModelProfile
from vertumnus.domain.units import Tokens, to_ns, to_seconds
from vertumnus.forecast.child_process import ChildForecasts
from vertumnus.forecast.in_process import InProcessForecasts
from vertumnus.forecast.question import Assumptions, Questions
from vertumnus.policy.reconfig.config import AdviseController, WhatIfController
from vertumnus.records.reconfigs import Reconfig
from vertumnus.run.feed import patience_ns
from vertumnus.run.pool import Pool
from vertumnus.serving.engine import Engine
from vertumnus.serving.loop import Ask
from vertumnus.sim.config import SimConfig


@contextmanager
def forecasts(
    config: RunConfig, pool: Pool, engine: Engine, assume: Callable[[], Assumptions]
) -> Iterator[Ask | None]:
    """Provide what carries out Forecast orders, None for a run whose controller gives none.

    *assume* is asked anew for each forecast.
    """
    if not isinstance(config.controller, WhatIfController | AdviseController):
        yield None
        return
    questions = Questions(pool.fleet, pool.control, assume)
    if isinstance(config.backend, SimConfig):
        yield InProcessForecasts(questions, engine, to_ns(config.backend.forecast_s))
    else:
        with ChildForecasts(questions, engine) as in_child:
            yield in_child


def assumptions(
    config: RunConfig, profile: ModelProfile, block_tokens: Tokens, made: Iterable[Reconfig]
) -> Assumptions:
    """Return the times that a forecast for a run of *config* assumes.

    A switch takes what the simulator is told, or the median of those that a live run has *made*; until
    there is one, the simulator's default.
    """
    if isinstance(config.backend, SimConfig):
        switch_s = config.backend.switch_s
    else:
        took = [each.switch_ns for each in made if each.outcome == "committed" and each.switch_ns is not None]
        switch_s = to_seconds(round(median(took))) if took else SimConfig().switch_s
    return Assumptions(profile, config.cluster.link, block_tokens, switch_s, patience_ns(config))
