"""Where in a run the console stands: at its end, which may move, at an instant, or playing."""

from collections.abc import Callable
from typing import Any, NamedTuple

from vertumnus.domain.units import SECOND, Nanoseconds
from vertumnus.records.log import is_locked
from vertumnus.records.run_dir import RunDir
from vertumnus_console.replay import Replay
from vertumnus_console.shelf import Shelf
from vertumnus_console.view import ClusterView, view_of

EVENTS_A_TURN = 500
"""About 20 ms of replay: how long a key may wait."""
SEEK_STEPS = 20
"""Steps of a seek from the start to the latest instant read."""


GONE = "log deleted"
"""How a run stands whose folder was taken away: whether it goes on, nobody can tell."""


class Look(NamedTuple):
    """What a screen wants to see of a replay beyond the view."""

    name: str
    make: Callable[[Replay, Nanoseconds], object]
    every: int = 1
    """Snapshots between two of it, for what is costly to make."""


class Looked(NamedTuple):
    """A look taken."""

    name: str
    content: Any
    """Immutable; the screen that asked for it knows its type."""
    age: int
    """Snapshots since it was made."""


class Snapshot(NamedTuple):
    """What there is to draw."""

    view: ClusterView
    end_ns: Nanoseconds | None
    """The run's last instant, as far as its log went when last looked; None until it was read that far."""
    is_live: bool
    """Whether the run still writes its log."""
    speed: float
    """Of playing: the run's seconds a second."""
    follows: bool
    """Whether what is shown is the run's end, as far as it is read."""
    is_playing: bool
    is_seeking: bool
    """Whether the replay is still on its way to what was asked for."""
    progress: float
    """Share of the way to the instant that is sought, or of the log read on the way to its end."""
    status: str
    """How the run ended: the words of its last file, or "killed" without one; "" while it is live.

    With a note where the log's end is torn.
    """
    looked: Looked | None
    """What the screen in front shows beyond the view."""
    quiet_s: float = 0.0
    """How long nothing was read of the end of a run that goes on, by the wall's clock [s]."""


class _Playing(NamedTuple):
    since_wall_s: float
    from_ns: Nanoseconds


class Player:
    """Moves a replay to where the operator wants it; not safe to share between threads."""

    def __init__(self, run: RunDir, speed: float, shelf: Shelf | None = None) -> None:
        """Stand at the end of *run*; *speed* is the run's seconds per second of playing.

        What was read of it before is taken from *shelf*.

        Raises ConfigError when the run has no log that can be replayed.
        """
        self._run = run
        self._speed = speed
        self.replay = Replay(run.log, shelf)
        self.header = self.replay.header
        self._target: Nanoseconds | None = None
        """Show the run just before this; None for its end."""
        self._playing: _Playing | None = None
        self._was_followed = False
        """Whether the pause that holds is that of a live run's end."""
        self._end: Nanoseconds = 0
        """Latest instant read."""
        self._knows_end = False
        self._is_torn = False
        self._is_live = is_locked(run.log)
        self._is_seeking = True
        self._shown: ClusterView | None = None
        self._look: Look | None = None
        self._looked: Looked | None = None
        self._events = -1
        """Taken at the last turn."""
        self._heard_s = self._now_s = 0.0
        """When one of them was new, and the last turn, by the wall's clock."""

    def seek(self, steps: int) -> None:
        """Go *steps* seek steps on, or back when negative; past the end is the end."""
        at = self._end if self._target is None else self._target
        at += steps * -(-self._end // SEEK_STEPS)
        self._go(None if at >= self._end else max(0, at))

    def go_to_start(self) -> None:
        """Show the run before its first event."""
        self._go(0)

    def go_to(self, at: Nanoseconds) -> None:
        """Show the run just before instant *at*; its end when it had ended by then."""
        self._go(at)

    def go_to_end(self) -> None:
        """Show the run's end and follow it."""
        self._go(None)

    def toggle(self, wall_s: float) -> None:
        """Pause, or play on: a live run that was followed is followed again, one that is over plays.

        The end of a run that is over plays from the start. *wall_s* is the clock's time now. A pause holds
        nothing up: the run writes its log whoever reads it, and what came meanwhile is caught up with.
        """
        if self._playing is not None:
            self._playing = None
        elif self._target is None and self._is_live:
            self._go(self._end + 1)  # the last event that is shown stays shown
            self._was_followed = True
        elif self._was_followed:
            self.go_to_end()
        else:
            at = self._target or 0
            self.play_from(at, wall_s)

    def play_from(self, at: Nanoseconds, wall_s: float) -> None:
        """Play from instant *at* on, which is shown at the clock's time *wall_s*."""
        self._go(at)
        self._playing = _Playing(wall_s, at)

    def set_speed(self, speed: float, wall_s: float) -> None:
        """Play at *speed* seconds of the run a second from now on."""
        if self._playing is not None:
            self._playing = _Playing(wall_s, self._target or 0)
        self._speed = speed

    @property
    def speed(self) -> float:
        """The run's seconds per second of playing."""
        return self._speed

    @property
    def run(self) -> RunDir:
        """The run that is played."""
        return self._run

    @property
    def is_live(self) -> bool:
        """Whether the run still writes its log, as far as `turn` saw."""
        return self._is_live

    @property
    def stands_at(self) -> Nanoseconds:
        """The instant that the replay stands at: the one that was asked for, once it is there."""
        if self._target is not None and not self._is_seeking:
            return self._target
        return self.replay.now_ns or 0

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing will change until somebody asks for it."""
        return not (self._is_live or self._is_seeking or self._playing)

    def turn(self, wall_s: float) -> bool:
        """Go on for a moment at the clock's time *wall_s*; return whether there is more to do at once."""
        # before reading: what the log holds once it is let go is all that there will be
        self.look_whether_live()
        if self._playing is not None:
            past_s = wall_s - self._playing.since_wall_s
            self._target = self._playing.from_ns + round(past_s * self._speed * SECOND)
        if self._target is not None and self._is_behind_us():
            self.replay.go_before(self._target)
        self._is_seeking = self.replay.advance(self._target, EVENTS_A_TURN)
        self._end = max(self._end, self.replay.now_ns or 0)
        if not self._is_seeking and self.replay.is_at_end:
            self._knows_end = True
            self._is_torn = self.replay.is_torn
            if self._playing is not None or self._is_past_the_end():
                self.go_to_end()
        self._now_s = wall_s
        if self._events != self.replay.events:
            self._events, self._heard_s = self.replay.events, wall_s
        return self._is_seeking

    def look_whether_live(self) -> bool:
        """Return whether the run still writes its log."""
        self._is_live = is_locked(self._run.log)
        return self._is_live

    def snapshot(self) -> Snapshot:
        """Return what there is to draw; on the way back to an instant, what was shown before."""
        at = self.stands_at
        if self._shown is None or not self._is_seeking or at > self._shown.now_ns:
            self._shown = view_of(self.replay.pool, self.replay.folds, self.header.block_tokens, at)
            self._looked = self._look_closely(at)
        return Snapshot(
            view=self._shown,
            end_ns=self._end if self._knows_end else None,
            is_live=self._is_live,
            speed=self._speed,
            follows=self._target is None,
            is_playing=self._playing is not None,
            is_seeking=self._is_seeking,
            progress=(self.replay.now_ns or 0) / self._target if self._target else self.replay.read,
            status="" if self._is_live else self._status(),
            looked=self._looked,
            quiet_s=self._now_s - self._heard_s if self._is_live and self._target is None else 0.0,
        )

    def stopped(self, last: Snapshot) -> Snapshot:
        """Return *last*, with which the replay stopped, with how the run stands by now."""
        return last._replace(
            is_live=self._is_live,
            is_playing=False,
            is_seeking=False,
            status="" if self._is_live else self._status(),
        )

    def look(self, look: Look | None) -> None:
        """Have *look* in every snapshot from now on."""
        self._look = look
        self._shown = self._looked = None

    def shelve(self) -> None:
        """Let the next console of this run begin where this one leaves."""
        self.replay.shelve()

    def close(self) -> None:
        """Close the log."""
        self.replay.close()

    def _look_closely(self, at: Nanoseconds) -> Looked | None:
        look, last = self._look, self._looked
        if look is None:
            return None
        if last is not None and last.age + 1 < look.every and not self.is_at_rest:
            return last._replace(age=last.age + 1)
        return Looked(look.name, look.make(self.replay, at), 0)

    def _go(self, target: Nanoseconds | None) -> None:
        self._was_followed = False
        self._target = target
        self._playing = None
        self._is_seeking = True

    def _is_behind_us(self) -> bool:
        now = self.replay.now_ns
        return self._target is not None and now is not None and now >= self._target

    def _is_past_the_end(self) -> bool:
        return not self._is_live and self._target is not None and self._target > self._end + 1

    def _status(self) -> str:
        if not self._run.log.exists():
            return GONE
        end = self._run.end()
        ended = "killed" if end is None else f"{end.status}, {end.verdict}"
        return f"{ended}, last records lost" if self._is_torn else ended
