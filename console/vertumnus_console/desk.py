"""The operator's side of a live run: connects to its action socket, again when it is lost, and acts."""

from concurrent.futures import Future, wait
from enum import StrEnum
from pathlib import Path
from threading import Thread
from typing import NamedTuple

from vertumnus.actions.client import ActionClient, NotConnected
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.facts import Action, OperatorActed
from vertumnus_console.acts import Act, act_of

RETRY_S = 1.0
"""Between two tries to connect [s]."""
PATIENCE_S = 0.2
"""How long a try is waited for; one that takes longer, as at a run that is stopped, goes on by itself [s]."""
OWED_S = 3.0
"""From which on an answer is late: a run that goes on answers between two of its events [s]."""


class Link(StrEnum):
    """How the console stands to the run."""

    READ_ONLY = "read-only"
    """The operator asked for a console that cannot act."""
    NONE = "over"
    """The run has ended: there is nobody to act on."""
    CONNECTED = "connected"
    LOST = "lost, reconnecting"


class Wish(NamedTuple):
    """What the operator wants done."""

    action: Action
    workers: tuple[CpGroup, ...] = ()
    setting: str = ""
    value: int | float | str | None = None


class Asked(NamedTuple):
    """A wish on its way."""

    wish: Wish
    at_s: float


class DeskState(NamedTuple):
    """What the screen shows of the connection."""

    link: Link
    problem: str
    """Why it is lost, or how long a run that is connected has owed an answer; "" when all is well."""
    actions: frozenset[Action]
    """What may be asked for now."""
    who: str
    """Who asks."""


class Desk:
    """One operator's connection to one run; belongs to the feed's thread."""

    def __init__(self, socket: Path, who: str, *, reads_only: bool) -> None:
        self._socket = socket
        self._who = who
        self._reads_only = reads_only
        self._client: ActionClient | None = None
        self._connecting: Future[ActionClient] | None = None
        self._next_try = 0.0
        self._problem = ""
        self._is_live = False
        self._now = 0.0
        """Of the last turn [s]."""
        self._asked: dict[int, Asked] = {}
        """What this connection has no answer to yet, the oldest first."""
        self.refusals: list[str] = []
        """What was refused without a place in the log; the screen takes them out."""
        self.answers: list[Act] = []
        """What became of the others: the log has it too, but may not be read that far; taken out as well."""

    @property
    def state(self) -> DeskState:
        """How things stand."""
        if self._reads_only:
            return DeskState(Link.READ_ONLY, "", frozenset(), self._who)
        if not self._is_live:
            return DeskState(Link.NONE, "", frozenset(), self._who)
        if self._client is None:
            return DeskState(Link.LOST, self._problem or "no answer", frozenset(), self._who)
        return DeskState(Link.CONNECTED, self._owed(), frozenset(self._client.welcome.actions), self._who)

    def turn(self, is_live: bool, wall_s: float) -> None:
        """Connect when it is time, and read what the run answered."""
        self._is_live, self._now = is_live, wall_s
        if not is_live:
            self.close()
        elif self._client is not None:
            self._read()
        elif self._connecting is not None:
            self._look_at_try()
        elif not self._reads_only and wall_s >= self._next_try:
            self._next_try = wall_s + RETRY_S
            self._connect()

    def act(self, wish: Wish) -> None:
        """Ask the run for *wish*; `turn` reads its answer."""
        client = self._client
        if client is None:
            self.refusals.append(f"{wish.action}: not connected; {self._advice()}")
            return
        try:
            self._asked[client.act(*wish)] = Asked(wish, self._now)
        except NotConnected as error:
            self._lose(error)
            self.refusals.append(f"{wish.action}: {error}")

    def close(self) -> None:
        """Hang up; safe to call twice."""
        if self._client is not None:
            self._client.close()
            self._client = None
            self._asked.clear()
        if self._connecting is not None:
            self._connecting.add_done_callback(_hang_up)
            self._connecting = None

    def _connect(self) -> None:
        connecting: Future[ActionClient] = Future()
        self._connecting = connecting

        def work() -> None:
            try:
                connecting.set_result(ActionClient(self._socket, self._who))
            except Exception as error:  # the desk tells it
                connecting.set_exception(error)

        Thread(target=work, name="connect", daemon=True).start()
        wait([connecting], PATIENCE_S)
        self._look_at_try()

    def _look_at_try(self) -> None:
        if self._connecting is None or not self._connecting.done():
            return
        tried, self._connecting = self._connecting, None
        error = tried.exception()
        if error is None:
            self._client, self._problem = tried.result(), ""
        else:
            self._problem = str(error)

    def _read(self) -> None:
        assert self._client is not None
        try:
            answers = self._client.answers()
        except NotConnected as error:
            self._lose(error)
            return
        for answer in answers:
            wish = self._asked.pop(answer.number).wish
            if answer.action_id is None:
                self.refusals.append(answer.reason)
            else:
                fact = OperatorActed(0, answer.action_id, self._who, *wish)
                self.answers.append(act_of(fact, answer.accepted, answer.reason))

    def _lose(self, error: NotConnected) -> None:
        self._problem = str(error)
        self.close()

    def _owed(self) -> str:
        """Return how long the oldest wish has waited for its answer, if that is no passing delay."""
        oldest = next(iter(self._asked.values()), None)
        if oldest is None or self._now - oldest.at_s < OWED_S:
            return ""
        return f"no answer for {self._now - oldest.at_s:.0f} s"

    def _advice(self) -> str:
        if self._reads_only:
            return "this console was started with --read-only"
        return f"trying again ({self._problem or 'no answer'})" if self._is_live else "the run has ended"


def _hang_up(tried: "Future[ActionClient]") -> None:
    if tried.exception() is None:
        tried.result().close()
