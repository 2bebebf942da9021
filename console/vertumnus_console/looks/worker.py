"""One worker, looked at closely: what it runs, who waits there, why the last ones came."""

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.units import Nanoseconds, to_seconds
from vertumnus.domain.wording import counted
from vertumnus.policy.placement import Decision, Offer
from vertumnus.policy.policies.why import runner_up
from vertumnus_console.looks.queues import queues
from vertumnus_console.replay import Replay
from vertumnus_console.words import brief, clock, duration

LINES = 8
"""Of each list."""


def worker_lines(replay: Replay, group: CpGroup, now: Nanoseconds) -> list[str]:
    """Return what there is to know of worker *group*; one line when it is gone."""
    worker = replay.pool.fleet.workers.get(group)
    if worker is None:
        return [f"worker {group} is gone: it was split or merged"]
    cache = worker.cache
    return [
        f"ranks {group.ranks[0]} to {group.ranks[-1]}, {worker.state}, epoch {worker.epoch}, "
        f"{brief(cache.used)} of {brief(cache.capacity)} blocks in use",
        _load(replay, group, now),
        *_running(replay, group),
        *_waiting(replay, group, now),
        *_chosen(replay, group),
    ]


def _load(replay: Replay, group: CpGroup, now: Nanoseconds) -> str:
    loads = {each: replay.folds.busy.load(each, now) for each in replay.pool.control.pool.groups}
    mean = sum(load.share for load in loads.values()) / len(loads)
    mine = replay.folds.busy.load(group, now)
    return (
        f"last minute: {counted(mine.steps, 'step')}, busy {mine.share:.0%} of it; all workers on "
        f"average {mean:.0%}"
    )


def _running(replay: Replay, group: CpGroup) -> list[str]:
    block = replay.header.block_tokens
    lines = [
        f"request {each.request.request_id}".ljust(16)
        + f"R {brief(each.request.input_tokens - each.cached_blocks * block)}  "
        + f"P {brief(each.cached_blocks * block)}"
        for each in replay.pool.fleet.workers[group].running
    ]
    return ["", "in its step", *(lines or ["nothing"])]


def _waiting(replay: Replay, group: CpGroup, now: Nanoseconds) -> list[str]:
    waiting = [each for each in queues(replay, now) if each.worker == group]
    lines = [
        f"request {each.request_id}".ljust(16)
        + f"{brief(each.input_tokens)} tokens, {brief(each.cached_tokens)} cached, "
        + f"s {duration(to_seconds(each.service_ns))}, waited {duration(to_seconds(each.waited_ns))}"
        for each in waiting[:LINES]
    ]
    more = [f"and {len(waiting) - LINES} more (u)"] if len(waiting) > LINES else []
    return ["", "waiting, next first", *(lines or ["nobody"]), *more]


def _chosen(replay: Replay, group: CpGroup) -> list[str]:
    lines = []
    for choice in reversed(replay.folds.choices):
        decision = choice.decision
        if decision.chosen is None or decision.offers[decision.chosen].worker != group:
            continue
        lines.append(_choice(decision, decision.offers[decision.chosen]))
        if len(lines) == LINES:
            break
    heading = "came here lately: predicted wait and service, cached tokens P, next best worker"
    return ["", heading, *(lines or ["none of the newest placements"])]


def _choice(decision: Decision, offer: Offer) -> str:
    second = runner_up(decision)
    wait, service = duration(to_seconds(offer.queue_ns)), duration(to_seconds(offer.service_ns))
    over = "" if second is None else f"  over {decision.offers[second].worker}"
    return (
        f"{clock(decision.at):>9} request {decision.request_id:<6}wait {wait:>7}  service {service:>7}  "
        f"P {brief(offer.cached_tokens):>5}{over}"
    )
