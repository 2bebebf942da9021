"""Where one prefix could be copied to, and what could go where it is (sec. 7.2)."""

from typing import NamedTuple

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.units import BlockKey, Nanoseconds, to_seconds
from vertumnus.domain.wording import byte_size, counted
from vertumnus_console.replay import Replay
from vertumnus_console.words import duration


class Place(NamedTuple):
    """A worker, and what an action would do there."""

    worker: CpGroup
    text: str
    is_possible: bool


def copy_places(replay: Replay, key: BlockKey, now: Nanoseconds) -> tuple[Place, ...]:
    """Return every worker with the copy that would complete the prefix there, or why there is none.

    The soonest first, those where nothing can be done last. Raises ConfigError when the prefix is gone.
    """
    control = replay.pool.control
    if control.index.node(key) is None:
        raise ConfigError(GONE)
    possible: list[tuple[Nanoseconds, Place]] = []
    others: list[Place] = []
    for worker in control.pool.groups:
        try:
            plan = control.prefixes.by_hand.copy_plan(key, worker, now)
        except ConfigError as error:
            others.append(_impossible(worker, str(error).removeprefix("copy: ")))
            continue
        size = byte_size(plan.blocks * control.prefixes.transfers.links.block_bytes)
        took = duration(to_seconds(plan.ready_ns - now))
        text = f"{plan.blocks} of {counted(len(plan.path), 'block')}, {size} from {plan.source}, in {took}"
        possible.append((plan.ready_ns, Place(worker, text, True)))
    return (*(place for _, place in sorted(possible)), *others)


def reclaim_places(replay: Replay, key: BlockKey) -> tuple[Place, ...]:
    """Return every worker that holds the prefix with what would go there, most first, or why nothing would.

    Raises ConfigError when the prefix is gone.
    """
    control = replay.pool.control
    if control.index.node(key) is None:
        raise ConfigError(GONE)
    block_bytes = control.prefixes.transfers.links.block_bytes
    plans = control.prefixes.by_hand.reclaimable_everywhere(key)
    possible = sorted(
        ((len(keys), worker) for worker, keys in plans.items() if not isinstance(keys, str)),
        key=lambda item: (-item[0], item[1]),
    )
    return (
        *(
            Place(worker, f"{counted(count, 'block')}, {byte_size(count * block_bytes)}", True)
            for count, worker in possible
        ),
        *(_impossible(worker, why) for worker, why in plans.items() if isinstance(why, str)),
    )


def _impossible(worker: CpGroup, why: str) -> Place:
    """Return *worker* with the reason, which need not begin by naming it again."""
    return Place(worker, why.removeprefix(f"{worker} "), False)


GONE = "that prefix is gone: nobody holds it any more"
