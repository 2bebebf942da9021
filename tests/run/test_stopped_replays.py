"""A log that this version cannot replay to its end, or replays to another run: said in one line."""

from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.console import Console

from tests.support.recorded import a_ulid
from vertumnus.cli import main
from vertumnus.commandline.exit_codes import FAILED, INVALID
from vertumnus.commandline.hydra_configs import composed, hydra_configs, plain_tree
from vertumnus.config import to_run_config
from vertumnus.domain.facts import StepFinished
from vertumnus.policy.control_plane import ControlPlane
from vertumnus.records.log import LogWriter, read_log
from vertumnus.records.provenance import RunStart
from vertumnus.records.run_dir import RunDir, find_run
from vertumnus.run.asked import Asked
from vertumnus.run.execute import serve

WORDS = ("+experiment=tool_agent", "backend=sim", "workload.requests=40")


@pytest.fixture(scope="module")
def runs_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short run."""
    place = tmp_path_factory.mktemp("runs")
    with hydra_configs():
        tree = plain_tree(composed((*WORDS, f"runs_dir={place}")))
    serve(to_run_config(tree), Asked(()), Console(file=StringIO()))
    return place


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A control plane that fails at the tenth end of a step."""
    original: Callable[..., object] = ControlPlane.handle
    steps: dict[ControlPlane, int] = {}

    def handle(control: ControlPlane, fact: object) -> object:
        steps[control] = steps.get(control, 0) + isinstance(fact, StepFinished)
        if steps[control] == 10:
            raise OverflowError("cannot convert float infinity to integer")
        return original(control, fact)

    monkeypatch.setattr(ControlPlane, "handle", handle)


def tenth_end_s(runs_dir: Path) -> float:
    records = read_log(find_run(runs_dir).run.log).records
    return [body.at for _, body in records if isinstance(body, StepFinished)][9] / 1e9


def test_an_audit_says_where_both_replays_stopped(runs_dir, broken, capsys) -> None:
    """Time, event and error, once a replay; the books are not judged, and the exit code is INVALID's."""
    assert main(["audit", "--runs-dir", str(runs_dir)]) == INVALID
    out = capsys.readouterr().out
    stopped = f"the replay stopped at {tenth_end_s(runs_dir):.3f} s, at "
    error = ": OverflowError: cannot convert float infinity to integer"
    assert f"fresh control plane: {stopped}StepFinished{error}\n" in out
    assert f"fleet and control plane: {stopped}StepDone{error}\n" in out
    assert "books: unknown, the replay stopped" in out


@pytest.mark.parametrize("words", [("explain", "39"), ("preview", "merge", "0x1", "1x1")], ids=lambda w: w[0])
def test_other_verbs_end_with_one_line(runs_dir, broken, words, capsys) -> None:
    """Exit code 1 and the same message."""
    assert main([*words, "--runs-dir", str(runs_dir)]) == FAILED
    out, err = capsys.readouterr()
    stopped = f"error: the replay stopped at {tenth_end_s(runs_dir):.3f} s, at StepDone: "
    assert not out and err.startswith(stopped) and err.count("\n") == 1


def test_placements_that_were_not_made_are_not_explained(runs_dir, tmp_path, capsys) -> None:
    """A log whose requests this version places elsewhere names the first of them."""
    header, records = read_log(find_run(runs_dir).run.log)
    other = replace(header, config={**header.config, "policy": {"name": "round_robin"}})
    run = RunDir.create(tmp_path, RunStart(run_id=a_ulid(1), name="other", overrides=()), "")
    writer = LogWriter(run.log, other)
    for record in records:
        writer.append(*record)
    writer.close()
    assert main(["explain", run.run_id, "39", "--runs-dir", str(tmp_path)]) == FAILED
    out, err = capsys.readouterr()
    assert not out and " was placed at " in err and "this version places request " in err
