"""What people are told of a run while it goes."""

from pathlib import Path
from types import SimpleNamespace

from tests.support.recorded import WORKERS, a_header, a_run_under_way, a_ulid
from vertumnus.domain.codec import FACT, INPUT, ORDER, Record
from vertumnus.domain.facts import HandoffFailed, OperatorActed, RankLost, StepFailed
from vertumnus.domain.orders import Answer
from vertumnus.domain.units import SECOND
from vertumnus.run import narration
from vertumnus.run.narration import Narration


def test_losses_are_told_once_each(tmp_path: Path, monkeypatch) -> None:
    """A lost rank and a failed step are lines once the log has them; a broken hand-off is a row only.

    With nobody left to serve, a loss says that.
    """
    monkeypatch.setattr(narration, "FLUSH_S", 0.0)
    _, recorder = a_run_under_way(tmp_path, a_ulid(1), [], a_header("live"))
    said: list[str] = []
    loop = SimpleNamespace(can_serve=True)
    telling = Narration(loop, recorder, None, lambda: False, said.append, lambda: 0)  # type: ignore[arg-type]

    def happen(*records: Record) -> list[str]:
        for record in records:
            recorder.record(*record)
        said.clear()
        telling.flush_when_due()
        return list(said)

    assert happen(Record(FACT, StepFailed(SECOND, 1, WORKERS[1], "rank 2: torn", False))) == [
        "at 1.0 s: step failed, worker 2x1: rank 2: torn"
    ]
    assert happen(Record(FACT, HandoffFailed(2 * SECOND, 5, 0, 0, "torn"))) == []
    assert happen(Record(INPUT, RankLost(3 * SECOND, 0, 0, "killed by SIGKILL"))) == [
        "at 3.0 s: rank lost, rank 0: killed by SIGKILL; the run goes on without it and ends INVALID"
    ]
    loop.can_serve = False
    assert happen(Record(INPUT, RankLost(3 * SECOND, 2, 0, "killed by SIGKILL"))) == [
        "at 3.0 s: rank lost, rank 2: killed by SIGKILL; nobody is left to serve: all requests fail from "
        "here on, and the run ends INVALID"
    ]
    refused = [
        Record(INPUT, OperatorActed(4 * SECOND, 0, "script", "merge", (WORKERS[0], WORKERS[1]))),
        Record(ORDER, Answer(0, False, "they are not siblings")),
    ]
    assert happen(*refused) == [
        f"at 4.0 s: wish refused, merge {WORKERS[0]} + {WORKERS[1]} by script: they are not siblings"
    ]
    assert happen() == []


def test_timers_of_an_idle_pool_show_the_clock(monkeypatch) -> None:
    """Every so many events with which nothing ends; one with which a request ends shows that instead."""
    monkeypatch.setattr(narration, "LOOK_EVERY", 3)
    told: list[tuple[str, int]] = []
    loop = SimpleNamespace(ended=0)
    progress = SimpleNamespace(
        show=lambda ended: told.append(("ended", ended)), quiet=lambda at_ns: told.append(("clock", at_ns))
    )
    telling = Narration(loop, None, progress, lambda: False, str, lambda: 9)  # type: ignore[arg-type]
    telling.flush_when_due = lambda: None  # type: ignore[method-assign]
    for ended in (0, 0, 1, 1, 1):
        loop.ended = ended
        telling.after_event()
    assert told == [("ended", 1), ("clock", 9)]
