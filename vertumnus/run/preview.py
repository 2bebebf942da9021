"""A split or merge of a stored or running run, tried at one of its instants: its log replayed up to there."""

from collections.abc import Collection
from contextlib import closing
from typing import NamedTuple, cast

from vertumnus.config import to_run_config
from vertumnus.domain.cluster import Composition, CpGroup
from vertumnus.domain.codec import INPUT, Body
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.facts import InputFact
from vertumnus.domain.jobs import AnyOutcome
from vertumnus.domain.move import Direction
from vertumnus.domain.units import Nanoseconds, to_seconds
from vertumnus.forecast.preview import Preview, preview
from vertumnus.records.clock import Clock
from vertumnus.records.log import LogHeader, read_log
from vertumnus.records.reconfigs import Reconfig, ReconfigList
from vertumnus.records.run_dir import RunDir
from vertumnus.run.forecasting import assumptions
from vertumnus.run.pool import Pool, pool_of
from vertumnus.serving.replay import redo


class RunPreview(NamedTuple):
    """A preview, and the pool that it was made of."""

    backend: str
    """What the run's own times are: "sim" or "live"; the preview's are predicted in any case."""
    composition: Composition
    """Workers in service at that instant."""
    patience_ns: Nanoseconds | None
    """How long the run's clients wait for a first token; None: for ever."""
    preview: Preview


class _Reached(NamedTuple):
    header: LogHeader
    pool: Pool
    now: Nanoseconds
    made: list[Reconfig]
    """Transitions that had ended by then."""


def preview_run(
    run: RunDir,
    wish: tuple[Direction, Collection[CpGroup]],
    at_ns: Nanoseconds | None,
    span_ns: Nanoseconds,
) -> RunPreview:
    """Return what *wish* would do at *at_ns* of *run*, or at the latest instant that its log tells.

    Raises ConfigError when there is no such instant, the log cannot be replayed, or the move is illegal.
    """
    header, pool, now, made = _replayed(run, at_ns)
    times = assumptions(to_run_config(header.config), header.profile, header.block_tokens, made)
    composition = pool.control.pool.serving
    seen = preview(pool.fleet, pool.control, now, wish, span_ns, times)
    return RunPreview(header.backend, composition, times.patience_ns, seen)


def _replayed(run: RunDir, at_ns: Nanoseconds | None) -> _Reached:
    """Replay the log of *run* through a fresh pool up to and with *at_ns*."""
    header, records = read_log(run.log)
    pool, clock = pool_of(header), Clock()
    reconfigs = ReconfigList(clock)

    def record(_source: int, body: Body) -> None:
        if handler := reconfigs.handlers.get(type(body)):
            handler(body)

    loop = redo(pool.fleet, pool.control, record)
    with closing(records):
        for source, body in records:
            if source != INPUT:
                continue
            event = cast(InputFact | AnyOutcome, body)
            if at_ns is not None and event.at > at_ns:
                return _Reached(header, pool, at_ns, reconfigs.reconfigs)
            clock.now = event.at
            loop.take(event)
    if at_ns is not None and at_ns > clock.now:
        raise ConfigError(
            f"--at: found {to_seconds(at_ns):g} s, but the log of run {run.run_id} goes to "
            f"{to_seconds(clock.now):.3f} s"
        )
    return _Reached(header, pool, clock.now, reconfigs.reconfigs)
