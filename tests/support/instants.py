"""What a console's screens show of a run where its replay stands, to be compared with another's."""

from typing import NamedTuple

from vertumnus.domain.units import Nanoseconds
from vertumnus_console.looks.decisions import decisions
from vertumnus_console.looks.log import log
from vertumnus_console.looks.model import model
from vertumnus_console.looks.queues import queues
from vertumnus_console.looks.trie import trie
from vertumnus_console.looks.worker import worker_lines
from vertumnus_console.player import Player
from vertumnus_console.replay import Replay
from vertumnus_console.view import view_of

LOOKS = (queues, trie, decisions, model, log)


class Instant(NamedTuple):
    """A replay between two events, and all that the screens show of it."""

    events: int
    """Taken so far."""
    now_ns: Nanoseconds
    shown: tuple[object, ...]
    """The view of overview, workers and events; the other screens; every worker looked at closely."""


def instant(player: Player) -> Instant:
    """Return what *player* shows; asked of a feed, it comes between two events of a run that goes on."""
    return instant_of(player.replay)


def instant_of(replay: Replay) -> Instant:
    """Return what the screens show of *replay*."""
    now = replay.now_ns or 0
    shown = (
        view_of(replay.pool, replay.folds, replay.header.block_tokens, now),
        *(look(replay, now) for look in LOOKS),
        *(worker_lines(replay, group, now) for group in replay.pool.fleet.workers),
    )
    return Instant(replay.events, now, shown)
