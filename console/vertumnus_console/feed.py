"""The thread that replays and acts, so that the screen never waits for either."""

from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import TypeAlias, TypeVar

from vertumnus.domain.errors import VertumnusError
from vertumnus_console.acts import Act
from vertumnus_console.desk import Desk, DeskState, Wish
from vertumnus_console.player import Player, Snapshot

INTERVAL_S = 0.2
"""Distance of two snapshots, and of two looks at a log that grows, what they take included [s]."""
LOOK_S = 0.1
"""Between two looks of a screen whether there is a newer snapshot: often enough to miss none [s]."""

Ask: TypeAlias = Callable[[Player], object]
"""What the operator wants of the player."""

_T = TypeVar("_T")


class Feed(Thread):
    """Owns player and desk; the screen asks and looks at the newest snapshot."""

    def __init__(self, player: Player, desk: Desk) -> None:
        super().__init__(name="feed", daemon=True)
        self.latest: Snapshot | None = None
        """Replaced whole; what was not looked at in time is never drawn."""
        self.failure: str | None = None
        """Why the replay ended early; the last snapshot stays."""
        self.desk: DeskState = desk.state
        """Replaced whole, like the snapshot."""
        self._player = player
        self._desk = desk
        self._asks: SimpleQueue[Ask | None] = SimpleQueue()
        self._once_there: list[Ask] = []
        """What waits until the replay is where it was sent."""

    def ask(self, what: Ask) -> None:
        """Have *what* done with the player; returns at once."""
        self._asks.put(what)

    def answer(self, what: Callable[[Player], _T], *, once_there: bool = False) -> "Future[_T]":
        """Return the future result of *what*, asked of the player between two events.

        With *once_there* it is asked when the replay is where it was sent, and not on its way.
        """
        future: Future[_T] = Future()

        def settle(player: Player) -> None:
            try:
                future.set_result(what(player))
            except Exception as error:  # the asker tells it
                future.set_exception(error)

        self._asks.put(settle if not once_there else lambda _player: self._once_there.append(settle))
        return future

    def act(self, wish: Wish) -> None:
        """Ask the run for *wish*; returns at once."""
        self._asks.put(lambda _player: self._desk.act(wish))

    def refusals(self) -> list[str]:
        """Take out what was refused without a place in the log."""
        told, self._desk.refusals = self._desk.refusals, []
        return told

    def answers(self) -> list[Act]:
        """Take out what the run answered otherwise."""
        told, self._desk.answers = self._desk.answers, []
        return told

    def stop(self) -> None:
        """End the thread and wait for it."""
        self._asks.put(None)
        self.join()

    def let_go(self) -> None:
        """Close the log of a feed that was never started."""
        self._player.close()

    def run(self) -> None:
        """Follow the run until `stop`; where its replay stops, go on to tell whether the run does."""
        try:
            if self._replays():
                self._player.shelve()
            else:
                self._attend()
        finally:
            self._player.close()
            self._desk.close()

    def _replays(self) -> bool:
        """Follow the run until `stop`; return False where something is wrong with its log."""
        try:
            self._follow()
        except VertumnusError as error:  # whatever it is, the screen stays and says so
            self.failure = str(error)
        except Exception as error:
            self.failure = f"{type(error).__name__}: {error}"
        return self.failure is None

    def _attend(self) -> None:
        """Keep to the desk, and to what is shown, of a run whose replay has stopped."""
        is_live = True
        while self._obey(INTERVAL_S if is_live else None):
            self._arrived()
            is_live = self._player.look_whether_live()
            self._desk.turn(is_live, monotonic())
            self.desk = self._desk.state
            if self.latest is not None:
                self.latest = self._player.stopped(self.latest)

    def _follow(self) -> None:
        due = 0.0
        while True:
            began = monotonic()
            has_more = self._player.turn(began)
            if not has_more:
                self._arrived()
            if not has_more or monotonic() >= due:
                due = began + INTERVAL_S
                self._desk.turn(self._player.is_live, monotonic())
                self.desk = self._desk.state
                self.latest = self._player.snapshot()
            if not self._obey(0.0 if has_more else self._patience_s(due)):
                return

    def _arrived(self) -> None:
        """Do what waited for the replay to be where it was sent."""
        waiting, self._once_there = self._once_there, []
        for what in waiting:
            what(self._player)

    def _patience_s(self, due: float) -> float | None:
        """Return how long there is nothing to do but what is asked [s]; None: for ever."""
        return None if self._player.is_at_rest else max(0.0, due - monotonic())

    def _obey(self, wait_s: float | None) -> bool:
        """Wait up to *wait_s* for something asked (None: for ever) and do all of it; False to stop."""
        try:
            while (what := self._asks.get(timeout=wait_s)) is not None:
                what(self._player)
                wait_s = 0.0
        except Empty:
            return True
        return False
