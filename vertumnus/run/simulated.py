"""A run in virtual time; imports neither torch nor sockets."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from vertumnus.config import RunConfig
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.profile import ModelProfile
from vertumnus.domain.request import Request
from vertumnus.domain.units import Tokens
from vertumnus.run.asked import Asked
from vertumnus.run.capacity import pool_rate
from vertumnus.run.initial import settled
from vertumnus.run.profiles import policy_warning, profile_line
from vertumnus.run.session import Recorded, Session, serve_recorded
from vertumnus.run.stream import Stream, arriving, load_stream, pace_note, threshold_note
from vertumnus.sim.config import SimConfig
from vertumnus.sim.durations import Durations
from vertumnus.sim.engine import SimEngine
from vertumnus.sim.paced import PacedEngine
from vertumnus.trace.blocks import to_requests

COLLECT_EVERY = 200_000
"""Allocations between two looks of the garbage collector; at its default of 700 they cost a third."""


def simulate(config: RunConfig, backend: SimConfig, asked: Asked, console: Console) -> Recorded:
    """Run *config* on the simulator. Raises ConfigError before anything is written."""
    profile = required_profile(config)
    console.print(profile_line(profile), soft_wrap=True, markup=False)
    config = settled(config, console)
    stream = load_stream(config)
    requests = simulated_requests(config, profile, stream)
    notes = [policy_warning(config), threshold_note(config, stream), pace_note(config, stream, requests)]
    for note in filter(None, notes):
        console.print(note, soft_wrap=True, markup=False)
    engine = virtual_engine(config, backend, profile, stream.block_tokens)
    session = Session(config, asked, profile, stream, requests)
    with rare_collections():
        return _serve(session, engine, backend, console)


def _serve(session: Session, engine: SimEngine, backend: SimConfig, console: Console) -> Recorded:
    if backend.clock == "fast":
        return serve_recorded(session, engine, console)
    paced = PacedEngine(engine, backend.speed or 1.0)
    return serve_recorded(session, paced, console, start_clock=paced.pace.start)


def virtual_engine(
    config: RunConfig, backend: SimConfig, profile: ModelProfile, block_tokens: Tokens
) -> SimEngine:
    """Return the engine of a run of *config* in virtual time."""
    durations = Durations(
        profile,
        config.seed,
        backend.noise_sigma,
        switch_s=backend.switch_s,
        link=config.cluster.link,
        block_tokens=block_tokens,
    )
    return SimEngine(durations)


def required_profile(config: RunConfig) -> ModelProfile:
    """Return the profile that a simulated run needs. Raises ConfigError without one."""
    if config.profile is None:
        raise ConfigError("profile: found null, backend sim needs one")
    return config.profile


def simulated_requests(config: RunConfig, profile: ModelProfile, stream: Stream) -> list[Request]:
    """Return the requests of *stream* at their arrivals, a load resolved against the profile's capacity."""
    capacity = pool_rate(config, profile, stream)
    return list(
        to_requests(
            arriving(config, stream, capacity), stream.block_tokens, config.slo, config.workload.token_scale
        )
    )


@contextmanager
def rare_collections() -> Iterator[None]:
    """Keep the collector off what lives as long as the run, and make it rare meanwhile."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_EVERY, before[1], before[2])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
