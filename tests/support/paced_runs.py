"""A paced simulated run of a few hundred requests in a thread of its own, for people who act on it."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import StringIO
from pathlib import Path
from queue import Queue
from threading import Thread
from unittest.mock import patch

from rich.console import Console

from tests.support.still_clock import MOST_S, StillClock
from vertumnus.actions.client import ActionClient, NotConnected
from vertumnus.commandline.hydra_configs import composed, hydra_configs, plain_tree
from vertumnus.config import to_run_config
from vertumnus.records.run_dir import RunDir, list_runs
from vertumnus.run.asked import Asked
from vertumnus.run.execute import Outcome, execute
from vertumnus.sim.pace import SystemClock

HELD = 1e-6
"""A speed at which a test sees no time pass."""
PATIENCE_S = 300.0
"""With a run that does not begin, answer or end [s]."""
WORDS = ("+experiment=tool_agent", "backend=sim", "backend.clock=paced", "workload.requests=200")


class _Narration(StringIO):
    """Tells when the run has said that it can be attached to."""

    def __init__(self) -> None:
        super().__init__()
        self.is_open: Queue[bool] = Queue()

    def write(self, text: str) -> int:
        if "to watch and act" in text:
            self.is_open.put(True)
        return super().write(text)


class PacedRun:
    """The run while it goes."""

    def __init__(
        self, runs_dir: Path, *words: str, speed: float = HELD, clock: StillClock | None = None
    ) -> None:
        """Start it, on the machine's clock or on *clock*, and wait until its action socket is there."""
        with hydra_configs():
            tree = plain_tree(composed((*WORDS, f"backend.speed={speed}", f"runs_dir={runs_dir}", *words)))
        self._config = to_run_config(tree)
        self._narration = _Narration()
        self.outcome: Outcome | None = None
        self._clients: list[ActionClient] = []
        self.clock = clock
        self._thread = Thread(target=self._execute, daemon=True)
        self._thread.start()
        self._narration.is_open.get(timeout=PATIENCE_S)
        self.run: RunDir = list_runs(runs_dir)[-1].run

    def client(self, who: str = "ann", *, reads_only: bool = False) -> ActionClient:
        """Attach to it."""
        client = ActionClient(self.run.actions, who, reads_only=reads_only)
        self._clients.append(client)
        return client

    def finish(self) -> Outcome:
        """Let it run to its end as fast as it can."""
        with suppress(NotConnected):  # at its end already
            client = self.client("the test's end")
            number = client.act("speed", value=1e6)
            if self.clock is not None:
                client.wait(number, PATIENCE_S)
                self.clock.let_pass(MOST_S)
        self._thread.join(timeout=PATIENCE_S)
        for client in self._clients:
            client.close()
        assert self.outcome is not None
        return self.outcome

    def _execute(self) -> None:
        with patch("vertumnus.sim.paced.SystemClock", lambda: self.clock or SystemClock()):
            self.outcome = execute(self._config, Asked(), Console(file=self._narration))


@contextmanager
def paced_run(
    runs_dir: Path, *words: str, speed: float = HELD, clock: StillClock | None = None
) -> Iterator[PacedRun]:
    """Yield a run that is brought to its end afterwards, whatever happened."""
    going = PacedRun(runs_dir, *words, speed=speed, clock=clock)
    try:
        yield going
    finally:
        going.finish()
