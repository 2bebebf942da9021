"""What a split or merge would mean, asked of the pool as it is shown."""

from typing import NamedTuple

from vertumnus.domain.cluster import Composition, CpGroup
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.move import Direction, Move
from vertumnus.domain.units import Nanoseconds, to_seconds
from vertumnus.policy.reconfig.capacity import Capacity
from vertumnus.policy.reconfig.moves import apply, check_move
from vertumnus_console.player import Player
from vertumnus_console.replay import Replay
from vertumnus_console.words import brief, duration, percent


class Preview(NamedTuple):
    """A move that is legal now, and what it would do."""

    move: Move
    lines: tuple[str, ...]


def preview(player: Player, kind: Direction, workers: tuple[CpGroup, ...]) -> Preview:
    """Return what *kind* of *workers* would do now. Raises ConfigError when it is illegal."""
    replay, now = player.replay, player.replay.now_ns or 0
    pool, lattice = replay.pool.control.pool, replay.header.lattice
    busy = frozenset(group for t in replay.pool.control.transitions for group in t.move.sources)
    move = check_move(pool.serving, lattice, kind, workers, busy)
    held = [str(group) for group in workers if pool.workers[group].held_by]
    if held:
        raise ConfigError(f"{kind}: {', '.join(held)} is drained; reopen it first (d)")
    lines = [
        *_composition(replay, move),
        *_drain(replay, move, now),
        *_blocks(replay, move),
        *_mode(replay, now),
    ]
    return Preview(move, tuple(lines))


def _composition(replay: Replay, move: Move) -> list[str]:
    before = replay.pool.control.pool.serving
    after = apply(before, move)
    lines = [f"composition  {before}  ->  {after}"]
    kappa = replay.header.profile.capacity or {}
    if {group.degree for group in after.workers} <= kappa.keys():
        change = _capacity(after, kappa) / _capacity(before, kappa) - 1.0
        lines.append(f"capacity     {change:+.1%} (kappa of the profile)")
    return lines


def _capacity(composition: Composition, kappa: dict[int, float]) -> float:
    return Capacity(kappa).of(composition)


def _drain(replay: Replay, move: Move, now: Nanoseconds) -> list[str]:
    pool = replay.pool
    queue_of = dict(zip(pool.control.pool.groups, pool.control.ledger.remaining(now), strict=True))
    lines = []
    for group in move.sources:
        worker = pool.fleet.workers[group]
        running = f"{len(worker.running)} in its step" if worker.running else "idle"
        lines.append(
            f"drain {group}".ljust(13) + f"{running}, {worker.queued} queued would be placed elsewhere, "
            f"{duration(to_seconds(queue_of[group]))} of work"
        )
    return lines


def _blocks(replay: Replay, move: Move) -> list[str]:
    caches = [replay.pool.fleet.workers[group].cache for group in move.sources]
    used, capacity = sum(cache.used for cache in caches), sum(cache.capacity for cache in caches)
    share = percent(used / capacity)
    kept = f"cache        {brief(used)} of {brief(capacity)} blocks in use ({share}), none moves"
    if move.kind == "merge":
        return [f"{kept}; all of them serve the merged worker"]
    return [
        f"{kept}; each half has every other block of a prefix",
        " " * 13 + "and copies the rest on first reuse",
    ]


def _mode(replay: Replay, now: Nanoseconds) -> list[str]:
    mode = replay.pool.control.mode(now)
    if mode.value not in ("auto", "hold"):
        return []
    hold_s = replay.header.config.get("controller", {}).get("hold_s", 0.0)
    return [f"controller   on hold for {hold_s:g} s after it; a gives it back at once"]
