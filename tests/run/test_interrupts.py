"""Ctrl-C in the middle of anything: what was recorded is in log and tables alike, and the books balance."""

import signal
from collections.abc import Callable, Iterator
from functools import partial
from io import StringIO
from pathlib import Path
from threading import Thread

import pytest
from msgspec.structs import replace
from rich.console import Console

from vertumnus.commandline.hydra_configs import composed, hydra_configs, plain_tree
from vertumnus.config import RunConfig, to_run_config
from vertumnus.domain.jobs import StepDone
from vertumnus.domain.wording import counted
from vertumnus.records.finish import salvage
from vertumnus.records.folds import RunFolds
from vertumnus.records.log import LogWriter
from vertumnus.records.run_dir import find_run
from vertumnus.run.asked import Asked
from vertumnus.run.audit import audit_run
from vertumnus.run.execute import serve
from vertumnus.run.interrupts import interrupts_held, let_interrupt_through, one_interrupt
from vertumnus.sim.pace import SystemClock
from vertumnus.workers.fleet import Fleet

TABLES = ("requests", "workers", "windows", "reconfigs", "cache_ops", "faults")


def a_config(*words: str) -> RunConfig:
    """The config of a simulated run of 400 requests."""
    with hydra_configs():
        every = ("+experiment=tool_agent", "backend=sim", "workload.requests=400", *words)
        return to_run_config(plain_tree(composed(every)))


@pytest.fixture(scope="module")
def config() -> RunConfig:
    return a_config()


def ctrl_c() -> None:
    signal.raise_signal(signal.SIGINT)


def at_calls(numbers: range, kind: type, original: Callable[..., object]) -> Callable[..., object]:
    """*original*, with a Ctrl-C at the end of each of its calls *numbers* with something of *kind*."""
    calls = 0

    def interrupted(*given: object) -> object:
        nonlocal calls
        returned = original(*given)
        calls += isinstance(given[-1], kind)
        if calls in numbers:
            ctrl_c()
        return returned

    return interrupted


def in_the_middle(original: Callable[..., object]) -> Callable[..., object]:
    """The fold of a batch, with a Ctrl-C after its first ten records."""

    def interrupted(folds: RunFolds, batch: Iterator[object]) -> None:
        records = list(batch)
        original(folds, records[:10])
        ctrl_c()
        original(folds, records[10:])

    return interrupted


def interrupted_run(config: RunConfig, runs_dir: Path) -> Path:
    """Run *config* until it is interrupted; return its folder."""
    with one_interrupt():
        recorded = serve(replace(config, runs_dir=str(runs_dir)), Asked(()), Console(file=StringIO()))
    assert recorded.end.status == "interrupted"
    return recorded.run.path


@pytest.mark.parametrize(
    ("owner", "name", "interrupt"),
    [
        (RunFolds, "apply", in_the_middle),
        (LogWriter, "_write", partial(at_calls, range(3, 4), bytes)),
        (Fleet, "conclude", partial(at_calls, range(50, 51), StepDone)),
        (Fleet, "conclude", partial(at_calls, range(50, 10**9), StepDone)),
    ],
    ids=["in a fold", "after a write", "in an event", "again and again"],
)
def test_an_interrupted_run_is_whole_up_to_an_event(
    config, tmp_path, monkeypatch, owner, name, interrupt
) -> None:
    """The log replays exactly, its tables are what a salvage makes of it; open requests are no fault."""
    with monkeypatch.context() as patched:
        patched.setattr(owner, name, interrupt(getattr(owner, name)))
        folder = interrupted_run(config, tmp_path)
    audit = audit_run(find_run(tmp_path).run)
    assert audit.is_clean and audit.records > 0 and audit.open_requests < 400
    first, *others = find_run(tmp_path).run.end().reasons
    assert first == f"interrupted with {counted(audit.open_requests, 'request')} open"
    assert not [reason for reason in others if not reason.endswith("planned requests never arrived")]
    told = {table: (folder / f"{table}.parquet").read_bytes() for table in TABLES}
    (folder / "_SUCCESS.json").unlink()
    salvage(find_run(tmp_path, folder.name).run)
    assert {table: (folder / f"{table}.parquet").read_bytes() for table in TABLES} == told


def test_a_wait_is_interrupted(tmp_path, monkeypatch) -> None:
    """A run that is held at speed 0 ends at a Ctrl-C, although no event comes any more."""
    monkeypatch.setattr(SystemClock, "wait", lambda clock, seconds: ctrl_c())
    interrupted_run(a_config("backend.clock=paced", "backend.speed=1e-6"), tmp_path)


def test_a_held_interrupt_waits_for_the_next_place() -> None:
    """It is raised where it is let through, once; later ones change nothing, not even the end of the hold."""
    passed = []
    with one_interrupt(), interrupts_held():
        let_interrupt_through()
        ctrl_c()
        passed.append("held")
        with pytest.raises(KeyboardInterrupt):
            let_interrupt_through()
        ctrl_c()
        let_interrupt_through()
        passed.append("once")
    assert passed == ["held", "once"]


def test_other_threads_neither_hold_nor_raise() -> None:
    """Signals are the main thread's: what another one runs does not keep them from it."""

    def elsewhere() -> None:
        with interrupts_held():
            let_interrupt_through()
            done.append(True)

    done: list[bool] = []
    with pytest.raises(KeyboardInterrupt), one_interrupt(), interrupts_held():
        ctrl_c()
        thread = Thread(target=elsewhere)
        thread.start()
        thread.join()
        assert done == [True]
        let_interrupt_through()
        done.append(False)
    assert done == [True]
