"""What every verb that reads a log makes of one that is cut, damaged or empty."""

import shutil
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from vertumnus.cli import main
from vertumnus.commandline.hydra_configs import composed, hydra_configs, plain_tree
from vertumnus.config import to_run_config
from vertumnus.records.log import GrowingLog, LogDamaged
from vertumnus.records.run_dir import RunDir, find_run
from vertumnus.run.asked import Asked
from vertumnus.run.audit import audit_run
from vertumnus.run.execute import execute

LAST = 149
"""The last request of the run."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> RunDir:
    """A run whose log has several batches."""
    words = ("+experiment=tool_agent", "backend=sim", f"workload.requests={LAST + 1}")
    folder = tmp_path_factory.mktemp("runs")
    with hydra_configs():
        config = to_run_config(plain_tree(composed((*words, f"runs_dir={folder}"))))
    return find_run(folder, execute(config, Asked(words), Console(file=StringIO())).run_id).run


def batches(run: RunDir) -> list[int]:
    """Return where each batch of a whole log begins, and where the last one ends."""
    log = GrowingLog(run.log)
    places = [log.place]
    while log.next_batch() is not None:
        places.append(log.place)
    log.close()
    return places


def with_log(whole: RunDir, runs_dir: Path, content: bytes) -> RunDir:
    """Return a killed run that left *content* of a log."""
    shutil.rmtree(runs_dir, ignore_errors=True)
    shutil.copytree(whole.path, runs_dir / whole.run_id)
    run = find_run(runs_dir).run
    (run.path / "_SUCCESS.json").unlink()
    run.log.write_bytes(content)
    return run


@pytest.fixture
def damaged(whole, tmp_path) -> RunDir:
    """A killed run with a wrong byte in its log's second batch."""
    content = bytearray(whole.log.read_bytes())
    content[batches(whole)[1] + 50] ^= 1
    return with_log(whole, tmp_path, bytes(content))


@pytest.mark.parametrize(
    "words",
    [
        ("audit",),
        ("explain", "latest", str(LAST)),
        ("salvage",),
        ("preview", "merge", "0x1", "1x1"),
        ("rerun",),
    ],
    ids=lambda words: words[0],
)
def test_damage_is_an_error_that_says_where(whole, damaged, words, capsys) -> None:
    """File, byte and record are named, with exit code 2, and no tables are made of what came before."""
    (damaged.path / "_SUCCESS.json").write_bytes((whole.path / "_SUCCESS.json").read_bytes())
    if words[0] == "salvage":
        (damaged.path / "_SUCCESS.json").unlink()
    assert main([*words, "--runs-dir", str(damaged.path.parent)]) == 2
    assert (
        f"{damaged.log}: damaged at byte {batches(whole)[1]}, where record 512 should be"
        in capsys.readouterr().err
    )


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_wherever_a_log_is_cut_its_audit_says_so(whole, tmp_path, data) -> None:
    """The whole batches are replayed and agree; that the end is missing is told unless a batch ends there."""
    content, ends = whole.log.read_bytes(), batches(whole)
    size = data.draw(st.one_of(st.sampled_from(ends[1:]), st.integers(ends[1], len(content))))
    found = audit_run(with_log(whole, tmp_path / "cut", content[:size]))
    assert found.is_clean and found.records > 0
    assert found.truncated == (size not in ends)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_wherever_a_byte_is_wrong_no_audit_agrees(whole, tmp_path, data) -> None:
    """Before the last batch it is an error, in the last one records are missing and that is told."""
    content, ends = bytearray(whole.log.read_bytes()), batches(whole)
    place = data.draw(st.integers(ends[0], len(content) - 1))
    content[place] ^= 1 << data.draw(st.integers(0, 7))
    run = with_log(whole, tmp_path / "flipped", bytes(content))
    if place < ends[-2]:
        with pytest.raises(LogDamaged):
            audit_run(run)
    else:
        assert audit_run(run).truncated


def test_a_run_that_ended_has_its_log_to_the_end(whole, tmp_path, capsys) -> None:
    """What is normal for a killed run is none of the books of one that ended: exit code 3."""
    run = with_log(whole, tmp_path, whole.log.read_bytes()[:-3])
    assert main(["audit", whole.run_id, "--runs-dir", str(tmp_path)]) == 0
    assert "the end is cut off" in capsys.readouterr().out
    (run.path / "_SUCCESS.json").write_bytes((whole.path / "_SUCCESS.json").read_bytes())
    assert main(["audit", whole.run_id, "--runs-dir", str(tmp_path)]) == 3
    assert "the log's last records are lost, although the run ended" in capsys.readouterr().out


def test_a_run_that_ended_valid_has_no_open_requests(whole, tmp_path, capsys) -> None:
    """A log that is cut between two batches is whole as far as it goes; its open requests tell."""
    run = with_log(whole, tmp_path, whole.log.read_bytes()[: batches(whole)[-2]])
    assert main(["audit", whole.run_id, "--runs-dir", str(tmp_path)]) == 0
    (run.path / "_SUCCESS.json").write_bytes((whole.path / "_SUCCESS.json").read_bytes())
    assert main(["audit", whole.run_id, "--runs-dir", str(tmp_path)]) == 3
    assert "requests are open in the log, although the run ended VALID" in capsys.readouterr().out


def test_an_empty_log_agrees_with_nothing(whole, tmp_path, capsys) -> None:
    """A header without records is nothing to replay: exit code 2."""
    with_log(whole, tmp_path, whole.log.read_bytes()[: batches(whole)[0]])
    assert main(["audit", whole.run_id, "--runs-dir", str(tmp_path)]) == 2
    assert "facts.log: holds no records, there is nothing to replay" in capsys.readouterr().err


def test_an_explanation_says_that_the_log_ends_early(whole, tmp_path, capsys) -> None:
    """What came of a placement is not known when the end is cut off; nor are requests that arrived there."""
    ends = batches(whole)
    with_log(whole, tmp_path, whole.log.read_bytes()[: ends[1] + 20])
    assert main(["explain", whole.run_id, str(LAST), "--runs-dir", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert said.endswith(", and the log's end is cut off\n")
    last = int(said.split(" to ")[1].split(",")[0])
    assert main(["explain", whole.run_id, str(last), "--runs-dir", str(tmp_path)]) == 0
    assert "the log's end is cut off; what came after it is not known" in capsys.readouterr().out
