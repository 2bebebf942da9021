"""A run on this machine's ranks, executed: start, calibrate, set the load, serve."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from vertumnus.config import RunConfig
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.profile import ModelProfile
from vertumnus.domain.units import RequestId
from vertumnus.domain.wording import counted
from vertumnus.live.calibrate import calibrate
from vertumnus.live.config import LiveConfig, ModelConfig
from vertumnus.live.engine import LiveEngine
from vertumnus.live.hardware import hardware_of
from vertumnus.live.machine import CpuWatch
from vertumnus.live.plan import make_plan
from vertumnus.live.rank_pool import CALIBRATION_EPOCH, FIRST_EPOCH
from vertumnus.run.asked import Asked
from vertumnus.run.capacity import pool_rate
from vertumnus.run.initial import settled
from vertumnus.run.profiles import policy_warning, profile_line, require_hardware
from vertumnus.run.session import Recorded, Session, serve_recorded
from vertumnus.run.stream import Stream, arriving, load_stream, pace_note, threshold_note
from vertumnus.trace.arrivals import mean_rate
from vertumnus.trace.prompts import Prompt, live_prompts
from vertumnus.trace.rows import TraceRow


class _Measured(NamedTuple):
    """What the machine can do."""

    profile: ModelProfile
    capacity: float
    """Rate that would keep all workers or all cores busy, whichever is lower [req/s]."""


def run_live(config: RunConfig, backend: LiveConfig, asked: Asked, console: Console) -> Recorded:
    """Run *config* on ranks of this machine.

    Raises ConfigError before anything is written when it cannot be run here; every process that was
    started has ended when this returns or raises.
    """
    model = required_model(config)
    config = settled(config, console)
    stream = load_stream(config)
    plan = make_plan(model, backend, config.cluster, stream.block_tokens, config.seed)
    if config.profile is not None:
        require_hardware(config.profile, hardware_of(plan))
        console.print(profile_line(config.profile), soft_wrap=True, markup=False)
    for line in filter(None, [policy_warning(config), threshold_note(config, stream)]):
        console.print(line, soft_wrap=True, markup=False)
    first_epoch = CALIBRATION_EPOCH if config.profile is None else FIRST_EPOCH
    engine = LiveEngine(plan, _no_prompt, _discard, first_epoch)
    try:
        decode = counted(config.cluster.decode.ranks, "decode rank")
        ranks = f"{config.cluster.gpus} prefill and {decode} on {plan.device}"
        console.print(f"starting {ranks}, model {model.name} ...")
        engine.start()
        measured = _measure(config, engine, stream, console)
        rows = arriving(config, stream, measured.capacity)
        console.print(_load_line(rows, measured))
        if note := pace_note(config, stream, rows):
            console.print(note, soft_wrap=True, markup=False)
        prompts = _prompts(config, model, stream, rows)
        engine.client.prompts = {prompt.request.request_id: prompt.tokens for prompt in prompts}.__getitem__
        requests = [prompt.request for prompt in prompts]
        read_slots = engine.digests if backend.check_memory else None
        session = Session(config, asked, measured.profile, stream, requests, read_slots)
        watch = CpuWatch()

        def start_clock() -> None:
            watch.start()
            engine.start_clock()

        return serve_recorded(session, engine, console, start_clock, watch.others_share)
    finally:
        engine.close()


def required_model(config: RunConfig) -> ModelConfig:
    """Return the model that a live run needs. Raises ConfigError without one."""
    if config.model is None:
        raise ConfigError("model: found null, backend live needs one (model=tiny, for example)")
    return config.model


def _measure(config: RunConfig, engine: LiveEngine, stream: Stream, console: Console) -> _Measured:
    profile = config.profile
    if profile is None:
        console.print("calibrating prefill times ...")
        profile = calibrate(engine).profile
        console.print(profile.provenance)
    return _Measured(profile, pool_rate(config, profile, stream))


def _load_line(rows: Sequence[TraceRow], measured: _Measured) -> str:
    rate = mean_rate(rows)
    requests = counted(len(rows), "request")
    if rate is None:
        return f"{requests} at once"
    return (
        f"{requests} at {rate:.2f} req/s, {rate / measured.capacity:.0%} of what would keep "
        f"this machine busy ({measured.capacity:.2f} req/s)"
    )


def _prompts(config: RunConfig, model: ModelConfig, stream: Stream, rows: Sequence[TraceRow]) -> list[Prompt]:
    return list(
        live_prompts(
            rows,
            vocab_size=model.vocab_size,
            block_tokens=stream.block_tokens,
            seed=config.seed,
            slo=config.slo,
            token_scale=config.workload.token_scale,
        )
    )


def _no_prompt(request_id: RequestId) -> NDArray[np.int64]:
    raise KeyError(request_id)  # until the load is set there are no requests


def _discard(request_id: RequestId, tokens: tuple[int, ...]) -> None:
    """Clients of a replayed trace do not read their answers."""
