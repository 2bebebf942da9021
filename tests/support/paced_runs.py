"""A paced simulated run of a few hundred requests in a thread of its own, for people who act on it."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import StringIO
from pathlib import Path
from queue import Queue
from threading import Thread

from rich.console import Console

from vertumnus.actions.client import ActionClient, NotConnected
from vertumnus.commandline.hydra_configs import composed, hydra_configs, plain_tree
from vertumnus.config import to_run_config
from vertumnus.records.run_dir import RunDir, list_runs
from vertumnus.run.asked import Asked
from vertumnus.run.execute import Outcome, execute

HELD = 1e-6
"""A speed at which a test sees no time pass."""
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

    def __init__(self, runs_dir: Path, *words: str, speed: float = HELD) -> None:
        """Start it and wait until its action socket is there."""
        with hydra_configs():
            tree = plain_tree(composed((*WORDS, f"backend.speed={speed}", f"runs_dir={runs_dir}", *words)))
        self._config = to_run_config(tree)
        self._narration = _Narration()
        self.outcome: Outcome | None = None
        self._clients: list[ActionClient] = []
        self._thread = Thread(target=self._execute, daemon=True)
        self._thread.start()
        self._narration.is_open.get(timeout=30)
        self.run: RunDir = list_runs(runs_dir)[-1].run

    def client(self, who: str = "ann", *, reads_only: bool = False) -> ActionClient:
        """Attach to it."""
        client = ActionClient(self.run.actions, who, reads_only=reads_only)
        self._clients.append(client)
        return client

    def finish(self) -> Outcome:
        """Let it run to its end as fast as it can."""
        with suppress(NotConnected):  # at its end already
            self.client("the test's end").act("speed", value=1e6)
        self._thread.join(timeout=60)
        for client in self._clients:
            client.close()
        assert self.outcome is not None
        return self.outcome

    def _execute(self) -> None:
        self.outcome = execute(self._config, Asked(), Console(file=self._narration))


@contextmanager
def paced_run(runs_dir: Path, *words: str, speed: float = HELD) -> Iterator[PacedRun]:
    """Yield a run that is brought to its end afterwards, whatever happened."""
    going = PacedRun(runs_dir, *words, speed=speed)
    try:
        yield going
    finally:
        going.finish()
