"""Whether the replay places each request where the run did; where not, it shows another run from then on."""

from collections import deque
from collections.abc import Callable, Iterable

from vertumnus.domain.codec import Body, Record
from vertumnus.domain.errors import VertumnusError
from vertumnus.domain.orders import Prefill


class Disagreement(VertumnusError):
    """A request that the replay places elsewhere than the run did."""


class Agreement:
    """Holds placements of the replay against those of the log, whichever comes first."""

    def __init__(self, tell: Callable[[int, Body], object]) -> None:
        """Pass on what the replay says to *tell*."""
        self._tell = tell
        self._logged: deque[Prefill] = deque()
        self._replayed: deque[Prefill] = deque()

    def read(self, batch: Iterable[Record]) -> None:
        """Take a batch of the log."""
        self._logged.extend(body for _, body in batch if type(body) is Prefill)

    def tell(self, source: int, body: Body) -> None:
        """Take what the replay says. Raises Disagreement."""
        self._tell(source, body)
        if type(body) is Prefill:
            self._replayed.append(body)
            self._compare()

    def _compare(self) -> None:
        logged, replayed = self._logged, self._replayed
        while logged and replayed:
            was, now = logged.popleft(), replayed.popleft()
            if (was.request_id, was.worker) != (now.request_id, now.worker):
                raise Disagreement(
                    f"request {was.request_id} was placed at {was.worker}, and this version places "
                    f"request {now.request_id} at {now.worker}"
                )
