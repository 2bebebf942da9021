"""What is told of a run line by line: faults, refusals, actions, moves and copies, newest first."""

from typing import NamedTuple

from vertumnus.domain.move import Move
from vertumnus.domain.units import SECOND, Nanoseconds, to_seconds
from vertumnus.domain.wording import byte_size, counted
from vertumnus.records.cache_ops import CacheOp
from vertumnus.records.faults import LOSSES, Fault
from vertumnus.records.reconfigs import Reconfig
from vertumnus_console.aftermath import After
from vertumnus_console.folds import Folds
from vertumnus_console.words import duration, percent

EVENTS = 200
"""Newest events that are told."""


class Event(NamedTuple):
    """Something that is told on a line."""

    t_ns: Nanoseconds
    kind: str
    """A `Fault`'s kind, "action", "refused", "move", "after", "copy", "failed" or "rejected"."""
    text: str


def events_of(folds: Folds) -> tuple[Event, ...]:
    """Return the newest of what went wrong, what operators did, moves and copies; newest first."""
    faults = (
        Event(each.t_ns, each.kind, fault_text(each, folds))
        for each in folds.faults.faults[-EVENTS:]
        if each.kind != "wish_refused"  # among the acts
    )
    unserved = (
        Event(each.t_ns, each.status, f"request {each.request_id}: {each.reason}")
        for each in folds.totals.unserved[-EVENTS:]
    )
    acts = (
        Event(each.t_ns, "action" if each.accepted else "refused", str(each))
        for each in folds.acts.acts[-EVENTS:]
    )
    moves = (
        Event(each.t_ns + each.total_ns, "move", move_text(each))
        for each in folds.reconfigs.reconfigs[-EVENTS:]
        if each.outcome == "committed"
    )
    afters = (Event(each.t_ns, "after", after_text(each)) for each in folds.aftermath.afters[-EVENTS:])
    copies = (
        Event(each.t_ns + (each.wait_ns or 0), "copy", copy_text(each))
        for each in folds.cache_ops.cache_ops[-EVENTS:]
        if each.outcome == "finished"
    )
    newest = sorted([*faults, *unserved, *acts, *moves, *afters, *copies], key=lambda event: event.t_ns)
    return tuple(reversed(newest[-EVENTS:]))


def fault_text(fault: Fault, folds: Folds) -> str:
    """Return whom a fault befell and why; of a loss, what it means for the run, too."""
    text = fault.subject + (f": {fault.reason}" if fault.reason else "")
    return f"{text}; {folds.losses.consequence(fault.kind, fault.t_ns)}" if fault.kind in LOSSES else text


def move_text(done: Reconfig) -> str:
    """Return a committed move with what it took."""
    parts = [f"{Move(done.kind, done.sources, done.targets)} by {done.by}"]
    if done.drain_ns is not None and done.switch_ns is not None:
        parts.append(f"drain {duration(to_seconds(done.drain_ns))}")
        parts.append(f"switch {duration(to_seconds(done.switch_ns))}")
    if done.redirected_requests:
        parts.append(f"{done.redirected_requests} redirected")
    return ", ".join(parts)


def after_text(told: After) -> str:
    """Return service a minute after a move beside that before it."""
    before, since = told.before, told.since
    return (
        f"{' + '.join(map(str, told.targets))} a minute on: "
        f"P90 {duration(before.ttft_p90_s)} -> {duration(since.ttft_p90_s)}, "
        f"met {percent(before.attainment, 0)} -> {percent(since.attainment, 0)}"
    )


def copy_text(done: CacheOp) -> str:
    """Return a finished copy with its bytes and speed."""
    size = done.payload_bytes or 0
    speed = f"{byte_size(size * SECOND / done.wire_ns)}/s" if done.wire_ns else ""
    blocks = counted(done.blocks, "block", "blocks")
    return f"{done.purpose:<9} to {done.worker!s:<6}{blocks:>10}{byte_size(size):>9}{speed:>11}"
