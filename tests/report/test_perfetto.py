"""The timeline of a run as a Chrome trace: steps, copies, moves and queues where they were."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.recorded import a_changing_history, a_history, a_run, a_ulid
from vertumnus.cli import main
from vertumnus.commandline.exit_codes import BAD_INPUT, OK


def events_of(file: Path) -> list[dict[str, Any]]:
    """Return the events of the trace in *file*."""
    data = file.read_bytes()
    found = json.loads(gzip.decompress(data) if file.suffix == ".gz" else data)
    assert found["displayTimeUnit"] == "ms"
    events: list[dict[str, Any]] = found["traceEvents"]
    return events


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_every_prefill_copy_and_move_is_there(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A dozen prefills of 2 s, a copy in 3 s, and a merge that drains for 4 s and switches in 1 s."""
    a_run(tmp_path, a_ulid(1), a_changing_history())
    file = tmp_path / name
    assert main(["report", "latest", "--perfetto", str(file), "--runs-dir", str(tmp_path)]) == OK
    assert capsys.readouterr().out == f"{file}\n"
    events = events_of(file)
    steps = [event for event in events if event.get("cat") == "prefill"]
    assert len(steps) == 12 and {event["dur"] for event in steps} == {2e6}
    tracks = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert {tracks[event["tid"]] for event in steps} <= {"worker 0x2", "worker 2x1", "worker 3x1"}
    begin, end = (event for event in events if event.get("cat") == "copy")
    assert (begin["ph"], end["ph"], begin["args"]["blocks"]) == ("b", "e", 2)
    assert end["ts"] - begin["ts"] == 3e6
    drain, switch = (event for event in events if event.get("cat") == "move")
    assert (drain["name"], drain["ts"], drain["dur"]) == ("merge: drain", 20e6, 4e6)
    assert (switch["name"], switch["ts"], switch["dur"]) == ("merge: switch", 24e6, 1e6)
    counted = {event["name"] for event in events if event["ph"] == "C"}
    assert {"waiting requests", "queued work [s] 0x2"} <= counted


def test_slices_of_a_worker_lie_one_after_the_other_or_within(tmp_path: Path) -> None:
    """The viewer nests slices of a track; a step begins when its requests have waited, and not before."""
    a_run(tmp_path, a_ulid(1), a_history(12))
    file = tmp_path / "t.json"
    main(["report", "--perfetto", str(file), "--runs-dir", str(tmp_path)])
    for event in events_of(file):
        if event["ph"] == "X":
            number = event["args"]["requests"][0]
            assert event["ts"] == pytest.approx(1e6 * (number + number % 4 / 4))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--perfetto", "t.png"], "--perfetto: found t.png, its name must end in one of .json, .json.gz"),
        (["--perfetto", "no/t.json"], "there is no folder no"),
        (["trie", "--perfetto", "t.json"], "report trie has no effect; leave it out"),
        (["--perfetto", "t.json", "--json"], "--perfetto: writes a file, --json would have no effect"),
        (["reconfig_timeline", "--perfetto", "t.json", "--figure", "t.png"], "each writes a file of its own"),
    ],
)
def test_mistakes(
    words: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One message each, nothing written."""
    monkeypatch.chdir(tmp_path)
    a_run(tmp_path / "runs", a_ulid(1), a_history(3))
    assert main(["report", *words]) == BAD_INPUT
    assert message in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]
