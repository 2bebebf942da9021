"""Two runs kept at one instant of their clocks: a replay beside another, or beside a live run."""

from typing import NamedTuple

from vertumnus.domain.units import Nanoseconds
from vertumnus_console.feed import Feed
from vertumnus_console.player import SEEK_STEPS, Snapshot


class Both(NamedTuple):
    """The newest snapshots of the two."""

    first: Snapshot
    second: Snapshot

    @property
    def now_ns(self) -> Nanoseconds:
        """The instant that is shown; a run that was over before it is shown at its end."""
        return max(self.first.view.now_ns, self.second.view.now_ns)

    @property
    def end_ns(self) -> Nanoseconds | None:
        """The later end, as far as the logs go; None until both were read that far."""
        if self.first.end_ns is None or self.second.end_ns is None:
            return None
        return max(self.first.end_ns, self.second.end_ns)

    @property
    def live_ns(self) -> Nanoseconds | None:
        """How far the live runs have come, all of them; None when both are over."""
        instants = [each.view.now_ns for each in self if each.is_live]
        return min(instants, default=None)

    @property
    def is_playing(self) -> bool:
        """Whether one of them plays; the other may have come to its end."""
        return self.first.is_playing or self.second.is_playing


class Pair:
    """Sends two feeds where the operator wants them, both to the same instant."""

    def __init__(self, first: Feed, second: Feed, speed: float) -> None:
        """Show both at their ends; *speed* is the runs' seconds per second of playing."""
        self.feeds = first, second
        self.speed = speed
        self.follows = True
        """Whether what is shown is the end: of both, or as far as the live ones have come."""
        self._at: Nanoseconds | None = None
        """The instant that both were sent to, drawn or not yet; None at the end, or while they play."""

    @property
    def both(self) -> Both | None:
        """What there is to draw; None until both were looked at."""
        first, second = (feed.latest for feed in self.feeds)
        return None if first is None or second is None else Both(first, second)

    def keep_step(self, both: Both) -> None:
        """While the end is followed, hold the other run where the live one is, the slower of two."""
        live = both.live_ns
        if not self.follows or live is None:
            return
        for feed, snapshot in zip(self.feeds, both, strict=True):
            is_leading = snapshot.is_live and snapshot.view.now_ns <= live
            if is_leading and not snapshot.follows:
                feed.ask(lambda player: player.go_to_end())
            elif not is_leading:
                feed.ask(lambda player: player.go_to(live + 1))  # what happened at that instant is shown

    def go_to(self, at: Nanoseconds) -> None:
        """Show both just before *at*."""
        self.follows, self._at = False, at
        for feed in self.feeds:
            feed.ask(lambda player: player.go_to(at))

    def go_to_end(self) -> None:
        """Show both at the end."""
        self.follows, self._at = True, None
        for feed in self.feeds:
            feed.ask(lambda player: player.go_to_end())

    def seek(self, both: Both, steps: int) -> None:
        """Go *steps* steps of the longer run on, or back when negative; past the end is the end."""
        end = both.end_ns or both.now_ns
        at = self._instant(both) + steps * -(-end // SEEK_STEPS)
        if at >= end:
            self.go_to_end()
        else:
            self.go_to(max(0, at))

    def toggle(self, both: Both, wall_s: float) -> None:
        """Pause, or go on: live runs are followed again; those that are over play, at the end from 0."""
        if both.is_playing or (self.follows and both.live_ns is not None):
            self.go_to(both.now_ns + 1)
        elif both.live_ns is not None:
            self.go_to_end()
        else:
            self._play(0 if self.follows else self._instant(both), wall_s)

    def set_speed(self, both: Both, speed: float, wall_s: float) -> None:
        """Play at *speed* from now on."""
        self.speed = speed
        for feed in self.feeds:
            feed.ask(lambda player: player.set_speed(speed, wall_s))
        if both.is_playing:
            self._play(both.now_ns, wall_s)

    def _play(self, at: Nanoseconds, wall_s: float) -> None:
        self.follows, self._at = False, None
        for feed in self.feeds:
            feed.ask(lambda player: player.play_from(at, wall_s))

    def _instant(self, both: Both) -> Nanoseconds:
        if self.follows:
            return both.end_ns or both.now_ns
        return both.now_ns if self._at is None else self._at
