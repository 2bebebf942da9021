"""A run that operators can act on: its action socket, open as long as it serves."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote

from rich.console import Console

from vertumnus.actions.server import ActionServer
from vertumnus.records.recorder import Recorder
from vertumnus.records.run_dir import RunDir
from vertumnus.serving.engine import Engine, WaitingEngine
from vertumnus.sim.paced import PacedEngine


@contextmanager
def attended(
    run: RunDir, recorder: Recorder, engine: Engine, first_id: int, console: Console
) -> Iterator[Callable[[], bool]]:
    """Open the action socket of *run* if *engine* keeps to the wall clock; yield whether an answer is due.

    Where no socket can be made the run goes on without one, and says so.
    """
    server = _opened(run, engine, first_id, console) if isinstance(engine, WaitingEngine) else None
    if server is None:
        yield _never
        return
    recorder.tell(server.told)
    try:
        yield lambda: server.is_awaiting
    finally:
        recorder.tell(None)
        server.close()


def _opened(run: RunDir, engine: Engine, first_id: int, console: Console) -> ActionServer | None:
    pace = engine.pace if isinstance(engine, PacedEngine) else None
    try:
        server = ActionServer(run.actions, run.run_id, engine.post, pace, first_id)
    except OSError as error:
        console.print(f"{run.actions}: no action socket ({error.strerror}); consoles can only watch")
        return None
    console.print(f"to watch and act: vertumnus console{_where(run)}", soft_wrap=True, markup=False)
    return server


def _where(run: RunDir) -> str:
    runs_dir = run.path.parent
    return "" if runs_dir == Path("runs") else f" --runs-dir {quote(str(runs_dir))}"


def _never() -> bool:
    return False
