"""The part of a run that both backends share: a folder, a log, the loop, and the end whatever it is."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import msgspec
from rich.console import Console
from ulid import ULID

import vertumnus
from vertumnus.config import RunConfig, plain_config
from vertumnus.domain.errors import VertumnusError
from vertumnus.domain.facts import OperatorActed
from vertumnus.domain.profile import ModelProfile
from vertumnus.domain.request import Request
from vertumnus.domain.units import Nanoseconds, to_ns, to_seconds
from vertumnus.forecast.question import Assumptions
from vertumnus.live.config import LiveConfig
from vertumnus.policy.config import PolicyConfig
from vertumnus.policy.placement import Observer
from vertumnus.policy.policies.rules import cost_unit
from vertumnus.policy.reconfig.config import ControllerConfig, script_of
from vertumnus.records.config import Measurement, RecordsConfig
from vertumnus.records.log import LogHeader, LogWriteError
from vertumnus.records.planned import Planned
from vertumnus.records.provenance import run_start
from vertumnus.records.recorder import Recorder
from vertumnus.records.run_dir import RunDir, RunEnd
from vertumnus.records.run_row import RunStatus
from vertumnus.run.asked import Asked
from vertumnus.run.attended import attended
from vertumnus.run.candidates import candidate_rows
from vertumnus.run.feed import feed_of, patience_ns
from vertumnus.run.forecasting import assumptions, forecasts
from vertumnus.run.interrupts import interrupts_held
from vertumnus.run.memory_check import MemoryCheck, ReadSlots
from vertumnus.run.narration import Narration
from vertumnus.run.pool import Pool, build_pool
from vertumnus.run.progress import Progress
from vertumnus.run.stream import Stream
from vertumnus.run.unended import UnendedRun
from vertumnus.serving.engine import Engine, WaitingEngine
from vertumnus.serving.loop import Ask, Loop
from vertumnus.serving.patience import with_patience

SCRIPT = "script"
"""Who acts where a config says what an operator would do."""


class Session(NamedTuple):
    """What is ready when the clock starts."""

    config: RunConfig
    asked: Asked
    profile: ModelProfile
    stream: Stream
    requests: Sequence[Request]
    read_slots: ReadSlots | None = None
    """Reads the ranks' memory; None where it is not to be checked."""


class Recorded(NamedTuple):
    """A run that has ended, one way or another."""

    run: RunDir
    end: RunEnd
    failure: BaseException | None


def serve_recorded(
    session: Session,
    engine: Engine,
    console: Console,
    start_clock: Callable[[], None] | None = None,
    others_share: Callable[[], float | None] | None = None,
) -> Recorded:
    """Serve the session's requests on *engine* and leave a whole run folder behind.

    *start_clock* is called when nothing is left to do before the first request, *others_share* after the
    last one: what others have used of this machine's cores since.

    An interrupt or an error ends the run early; what was recorded until then is kept, with the
    status "interrupted" or "failed". Raises ConfigError when the folder cannot be made, LogWriteError when
    the log cannot be begun, UnendedRun when the end cannot be written.
    """
    opened: _Opened | None = None
    failure: BaseException | None = None
    try:
        # an interrupt finds the folder whole, and no event, fold or frame in its middle: `Narration` lets it
        # through where that is so
        with interrupts_held():
            opened = _open(session)
            with _forecasts(session, engine, opened) as forecast:
                if start_clock is not None:
                    start_clock()
                opened = opened._replace(started=perf_counter())
                _serve(session, engine, opened, console, forecast)
    except KeyboardInterrupt as interrupt:
        failure = interrupt
    except Exception as error:  # whatever it was, the folder is closed and the error told with it
        failure = error
    if opened is None:
        assert failure is not None
        raise failure
    wall_s = perf_counter() - opened.started
    with interrupts_held():
        others = None if others_share is None else others_share()
        books = opened.pool.books()
        try:
            end = opened.recorder.finish(_status(failure), books, wall_s, _line(failure), others)
        except (LogWriteError, OSError) as error:
            before = None if isinstance(failure, LogWriteError) else _line(failure)
            raise UnendedRun(opened.run, error, before) from error
    return Recorded(opened.run, end, failure)


class _Opened(NamedTuple):
    """A run's folder and log, and the pool that is told there."""

    run: RunDir
    recorder: Recorder
    pool: Pool
    started: float


def _open(session: Session) -> _Opened:
    config, header = session.config, _header(session)
    planned = Planned.of(session.requests, session.stream.skipped)
    start = run_start(
        str(ULID()),
        config.name,
        session.asked.words,
        planned,
        sweep=session.asked.sweep,
        asked_hash=session.asked.config_hash,
        is_live=header.backend == "live",
    )
    run = RunDir.create(Path(config.runs_dir), start, msgspec.yaml.encode(config).decode())
    recorder = Recorder(run, header)
    observer = _sampling(header.records, session.config.policy, recorder)
    pool = build_pool(config, session.profile, header.block_tokens, header.longest_prompt, observer)
    return _Opened(run, recorder, pool, perf_counter())


def _forecasts(session: Session, engine: Engine, opened: _Opened) -> AbstractContextManager[Ask | None]:
    config, recorder = session.config, opened.recorder

    def assume() -> Assumptions:
        return assumptions(config, session.profile, session.stream.block_tokens, recorder.reconfigs)

    return forecasts(config, opened.pool, engine, assume)


def _serve(session: Session, engine: Engine, opened: _Opened, console: Console, forecast: Ask | None) -> None:
    config, pool, recorder = session.config, opened.pool, opened.recorder
    schedule_script(config.controller, engine)
    first_id = len(script_of(config.controller))
    feed = feed_of(config, session.stream, session.requests)
    check = _memory_check(session, engine, pool)
    total, tell = len(session.requests), session.asked.tell
    with (
        Progress(console, config.name, total, tell=tell) as progress,
        attended(opened.run, recorder, engine, first_id, console) as is_awaited,
    ):
        record = recorder.record if check is None else check.noting(recorder.record)
        clients = with_patience(check or engine, pool.fleet, patience_ns(config))
        loop = Loop(clients, pool.fleet, pool.control, record, forecast, feed.follow_ups)
        narration = Narration(loop, recorder, progress, is_awaited, partial(_say, console), engine.now)
        if isinstance(engine, WaitingEngine):
            engine.before_wait = narration.before_wait
        between = [narration.after_event] if check is None else [check.after_event, narration.after_event]
        loop.serve(iter(feed.arrivals), lambda: [act() for act in between])
        narration.end()
    if check is not None:
        check.compare()
        _say(console, check.summary())
    for line in not_reached(config.controller, engine.now()):
        _say(console, line)


def _memory_check(session: Session, engine: Engine, pool: Pool) -> MemoryCheck | None:
    if session.read_slots is None:
        return None
    cluster, block_tokens = session.config.cluster, session.stream.block_tokens
    return MemoryCheck(engine, session.read_slots, pool, block_tokens, cluster.blocks_per_rank)


def _say(console: Console, line: str) -> None:
    console.print(line, soft_wrap=True, markup=False, highlight=False)


def schedule_script(controller: ControllerConfig, engine: Engine) -> None:
    """Let the wishes of a script be told as an operator would tell them."""
    for number, wish in enumerate(script_of(controller)):
        at_ns = to_ns(wish.at_s)
        engine.schedule(OperatorActed(at_ns, number, SCRIPT, wish.action, wish.groups()), at_ns)


def not_reached(controller: ControllerConfig, ended_ns: Nanoseconds) -> Iterator[str]:
    """Yield a line for each wish of a script whose time had not come when the run ended."""
    for number, wish in enumerate(script_of(controller)):
        if to_ns(wish.at_s) > ended_ns:
            wanted = " ".join((wish.action, " + ".join(wish.workers))).rstrip()
            yield (
                f"controller.script[{number}]: {wanted} at {wish.at_s:g} s was not reached, "
                f"the run ended at {to_seconds(ended_ns):.1f} s"
            )


def _sampling(records: RecordsConfig, policy: PolicyConfig, recorder: Recorder) -> Observer | None:
    if records.decision_share == 0:
        return None
    unit = cost_unit(policy)
    return Observer(lambda decision: recorder.keep(candidate_rows(decision, unit)), records.samples)


def _status(failure: BaseException | None) -> RunStatus:
    if failure is None:
        return "finished"
    return "interrupted" if isinstance(failure, KeyboardInterrupt) else "failed"


def _line(failure: BaseException | None) -> str | None:
    if failure is None or isinstance(failure, KeyboardInterrupt):
        return None
    kind = "" if isinstance(failure, VertumnusError) else f"{type(failure).__name__}: "
    return f"{kind}{failure}"


def _header(session: Session) -> LogHeader:
    config = session.config
    return LogHeader(
        code_version=vertumnus.__version__,
        config=plain_config(config),
        profile=session.profile,
        lattice=config.cluster.lattice,
        composition=config.cluster.initial_composition(),
        block_tokens=session.stream.block_tokens,
        seed=config.seed,
        backend="live" if isinstance(config.backend, LiveConfig) else "sim",
        longest_prompt=max((request.input_tokens for request in session.requests), default=None),
        records=_measurement(config),
    )


def _measurement(config: RunConfig) -> Measurement:
    """Return the records config with the length buckets of the targets, as the scaled trace sees them."""
    bounds = config.slo.bounds(config.workload.token_scale)
    return Measurement.of(config.records, tuple(bound for bound in bounds if bound is not None))
