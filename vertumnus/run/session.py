"""The part of a run that both backends share: a folder, a log, the loop, and the end whatever it is."""

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import msgspec
from rich.console import Console
from ulid import ULID

import vertumnus
from vertumnus.config import RunConfig
from vertumnus.domain.errors import VertumnusError
from vertumnus.domain.profile import ModelProfile
from vertumnus.domain.request import Request
from vertumnus.domain.units import Tokens
from vertumnus.live.config import LiveConfig
from vertumnus.records.config import RecordsConfig
from vertumnus.records.finish import finish_run
from vertumnus.records.folds import RunFolds
from vertumnus.records.log import LogHeader, LogWriter
from vertumnus.records.provenance import run_start
from vertumnus.records.run_dir import RunDir, RunEnd
from vertumnus.records.run_row import RunStatus
from vertumnus.run.pool import Pool, build_pool
from vertumnus.run.progress import Progress
from vertumnus.run.recorder import DecisionSample, Recorder
from vertumnus.serving.engine import Engine
from vertumnus.serving.loop import Loop


class Session(NamedTuple):
    """What is ready when the clock starts."""

    config: RunConfig
    overrides: Sequence[str]
    profile: ModelProfile
    block_tokens: Tokens
    requests: Sequence[Request]


class Recorded(NamedTuple):
    """A run that has ended, one way or another."""

    run: RunDir
    end: RunEnd
    failure: BaseException | None


def serve_recorded(session: Session, engine: Engine, console: Console) -> Recorded:
    """Serve the session's requests on *engine* and leave a whole run folder behind.

    An interrupt or an error ends the run early; what was recorded until then is kept, with the
    status "interrupted" or "failed". Raises ConfigError when the folder cannot be made.
    """
    header = _header(session)
    run = RunDir.create(
        Path(session.config.runs_dir),
        run_start(str(ULID()), session.config.name, session.overrides),
        _config_text(session.config),
    )
    log = LogWriter(run.log, header)
    folds = RunFolds(header)
    sample = DecisionSample(session.config.records.decision_share)
    pool = build_pool(session.config, session.profile.prefill_time(), session.block_tokens, sample.observe)
    started = perf_counter()
    failure = _serve(session, engine, pool, log, folds, console)
    wall_s = perf_counter() - started
    try:
        end = finish_run(
            run,
            header,
            folds,
            status=_status(failure),
            books=pool.books(),
            wall_s=wall_s,
            candidates=sample.rows,
            failure=_line(failure),
        )
    finally:
        log.close()
    return Recorded(run, end, failure)


def _serve(
    session: Session, engine: Engine, pool: Pool, log: LogWriter, folds: RunFolds, console: Console
) -> BaseException | None:
    try:
        with Progress(console, session.config.name, len(session.requests)) as progress:
            recorder = Recorder(log, folds, progress)
            Loop(engine, pool.fleet, pool.control, recorder.record).serve(iter(session.requests))
    except KeyboardInterrupt as interrupt:
        return interrupt
    except Exception as error:  # whatever it was, the folder is closed and the error told with it
        return error
    return None


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
        config=msgspec.to_builtins(config, str_keys=True),
        profile=session.profile,
        lattice=config.cluster.lattice,
        composition=config.cluster.initial_composition(),
        block_tokens=session.block_tokens,
        seed=config.seed,
        backend="live" if isinstance(config.backend, LiveConfig) else "sim",
        records=_records_config(config),
    )


def _records_config(config: RunConfig) -> RecordsConfig:
    """Return the records config with the length buckets of the targets, as the scaled trace sees them."""
    bounds = config.slo.bounds(config.workload.token_scale)
    return msgspec.structs.replace(config.records, length_bounds=tuple(b for b in bounds if b is not None))


def _config_text(config: RunConfig) -> str:
    return msgspec.yaml.encode(config).decode()
