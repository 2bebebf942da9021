"""What a split or merge would mean, asked of the pool as it is shown."""

from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from threading import Thread
from typing import NamedTuple

from vertumnus.config import to_run_config
from vertumnus.domain.cluster import Composition, CpGroup
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.forecast import ForecastOutcome
from vertumnus.domain.move import Direction, Move
from vertumnus.domain.profile import Kappa
from vertumnus.domain.units import SECOND, Nanoseconds, to_seconds
from vertumnus.domain.wording import counted
from vertumnus.forecast.question import Question, near_future
from vertumnus.forecast.trial import answer
from vertumnus.policy.recent import Recurrence
from vertumnus.policy.reconfig.capacity import Capacity
from vertumnus.policy.reconfig.mode import Mode, configured_mode
from vertumnus.policy.reconfig.moves import apply
from vertumnus.run.forecasting import assumptions
from vertumnus.serving.snapshot import take_snapshot
from vertumnus_console.player import Player
from vertumnus_console.replay import Replay
from vertumnus_console.words import LABEL, brief, clock, duration, labelled, percent

NAMED = 10
"""Workers that are named at most."""
_BY_HAND = "nobody may move workers, f (Unfreeze) ends that: yes is refused until then"
FROZEN: dict[Mode, str] = {
    Mode.AUTO: "nobody may move workers, f (Unfreeze) or a (Auto) ends that: yes is refused until then",
    Mode.MANUAL: _BY_HAND,
    Mode.ADVISE: _BY_HAND,
    Mode.OFF: "controller=off takes no moves: yes is refused",
}
"""What a preview says when nobody may move, by the mode that the run was started with."""
SPAN_NS: Nanoseconds = 60 * SECOND
"""The arrivals of this long before stand for those to come."""


class Preview(NamedTuple):
    """A move that is legal at an instant, and what is known at once of it."""

    at_ns: Nanoseconds
    """The instant that it is of."""
    move: Move
    lines: tuple[str, ...]


class Forecast(NamedTuple):
    """What the next minute would bring with a move and without."""

    at_ns: Nanoseconds
    """The instant that it begins at."""
    lines: tuple[str, ...]


def preview(player: Player, kind: Direction, workers: tuple[CpGroup, ...]) -> Preview:
    """Return what *kind* of *workers* would do where *player* stands; raises ConfigError if it is illegal."""
    replay, now = player.replay, player.stands_at
    move = _legal(replay, kind, workers, now)
    lines = [
        *_composition(replay, move),
        *_drain(replay, move, now),
        *_blocks(replay, move),
        *_mode(replay, now),
    ]
    return Preview(now, move, tuple(lines))


def question(player: Player, kind: Direction, workers: tuple[CpGroup, ...]) -> Question:
    """Return what `forecast` needs of the pool where *player* stands; raises ConfigError like `preview`."""
    replay, now = player.replay, player.stands_at
    move = _legal(replay, kind, workers, now)
    pool, header = replay.pool, replay.header
    config = to_run_config(header.config)
    assumed = assumptions(config, header.profile, header.block_tokens, replay.folds.reconfigs.reconfigs)
    snapshot = take_snapshot(pool.fleet, pool.control, now)
    return Question(snapshot, (move,), near_future(pool.control, now, Recurrence(SPAN_NS)), assumed)


def _legal(replay: Replay, kind: Direction, workers: tuple[CpGroup, ...], now: Nanoseconds) -> Move:
    try:
        return replay.pool.control.legal_move(kind, workers)
    except ConfigError as error:
        raise ConfigError(*error.problems, *_instead(replay, kind, now)) from error


def _instead(replay: Replay, kind: Direction, now: Nanoseconds) -> Iterator[str]:
    """Yield which workers a *kind* is possible for at *now*, so that one need not try them all."""
    control, possible = replay.pool.control, []
    for group in control.pool.groups:
        workers = (group,) if kind == "split" else (group, group.sibling)
        with suppress(ConfigError):
            control.legal_move(kind, workers)
            possible.append(str(group))
    shown = ", ".join(possible[:NAMED]) + (", ..." if len(possible) > NAMED else "")
    at = clock(now)
    yield f"a {kind} is possible at {at} for {shown}" if possible else f"no {kind} is possible at {at}"


def forecast(question: Question) -> Forecast:
    """Return what *question* asks, simulated on copies of the pool; it takes a second or so."""
    stay, moved = answer(question)
    times = f"drain {_seconds(moved.drain_ns)}, switch {_seconds(moved.switch_ns)}"
    missing = f", {brief(moved.missing_blocks)} blocks to reconcile" if moved.missing_blocks else ""
    lines = (
        *labelled(
            "next minute",
            f"predicted from the last one, {counted(stay.requests, 'request')}; {times}{missing}",
        ),
        _columns("", "TTFT mean", "P90", "attainment"),
        _outcome("stay", stay),
        _outcome(question.moves[0].kind, moved),
        *_given_up(question.assumptions.patience_ns),
    )
    return Forecast(question.snapshot.at_ns, lines)


def _given_up(patience_ns: Nanoseconds | None) -> Iterator[str]:
    """Yield how the TTFTs count those whose clients give up, where any do."""
    if patience_ns is not None:
        yield f"  clients give up after {_seconds(patience_ns)}, which then counts as their TTFT"


def forecasting(asked: "Future[Question]") -> "Future[Forecast]":
    """Return the future answer to what is *asked*, worked out in a thread that nobody waits for."""
    future: Future[Forecast] = Future()

    def work() -> None:
        try:
            future.set_result(forecast(asked.result()))
        except Exception as error:  # whatever is wrong with a forecast, the move is asked for without it
            future.set_exception(error)

    Thread(target=work, name="forecast", daemon=True).start()
    return future


def _outcome(name: str, told: ForecastOutcome) -> str:
    return _columns(
        name, _seconds(told.ttft_mean_ns), _seconds(told.ttft_p90_ns), percent(told.slo_attainment)
    )


def _columns(name: str, *cells: str) -> str:
    return f"  {name}".ljust(LABEL) + "".join(cell.rjust(12) for cell in cells)


def _seconds(span: Nanoseconds | None) -> str:
    return duration(None if span is None else to_seconds(span))


def _composition(replay: Replay, move: Move) -> list[str]:
    before = replay.pool.control.pool.serving
    after = apply(before, move)
    lines = [f"composition  {before}  ->  {after}"]
    kappa = replay.header.profile.capacity or {}
    if {group.degree for group in after.workers} <= kappa.keys():
        change = _capacity(after, kappa) / _capacity(before, kappa) - 1.0
        lines.append(f"capacity     {change:+.1%} by kappa of the profile")
    return lines


def _capacity(composition: Composition, kappa: Mapping[int, Kappa]) -> float:
    return Capacity(kappa).of(composition)


def _drain(replay: Replay, move: Move, now: Nanoseconds) -> list[str]:
    pool = replay.pool
    queue_of = dict(zip(pool.control.pool.groups, pool.control.ledger.remaining(now), strict=True))
    lines = []
    for group in move.sources:
        worker = pool.fleet.workers[group]
        running = f"{len(worker.running)} in its step" if worker.running else "idle"
        queued = f"{worker.queued} queued go elsewhere" if worker.queued else "nobody is queued"
        work = f", {duration(to_seconds(queue_of[group]))} of work" if queue_of[group] else ""
        lines += labelled(f"drain {group}", f"{running}, {queued}{work}")
    return lines


def _blocks(replay: Replay, move: Move) -> list[str]:
    caches = [replay.pool.fleet.workers[group].cache for group in move.sources]
    used, capacity = sum(cache.used for cache in caches), sum(cache.capacity for cache in caches)
    share = percent(used / capacity)
    then = (
        "all serve the merged worker" if move.kind == "merge" else "halves copy what they lack on first reuse"
    )
    kept = f"{brief(used)} of {brief(capacity)} blocks in use ({share}), none moves; {then}"
    return labelled("cache", kept)


def _mode(replay: Replay, now: Nanoseconds) -> list[str]:
    """Return what the mode at *now* makes of a move by hand, and the move of the mode."""
    mode = replay.pool.control.mode(now)
    if mode is Mode.OFF:
        return labelled("controller", FROZEN[configured_mode(to_run_config(replay.header.config).controller)])
    if mode in (Mode.AUTO, Mode.HOLD):
        hold_s = replay.header.config.get("controller", {}).get("hold_s", 0.0)
        return labelled("controller", f"on hold for {hold_s:g} s after it; a gives it back at once")
    return []
