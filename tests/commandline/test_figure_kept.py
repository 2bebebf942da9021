"""A report that is kept holds until anything that it was made of is changed, taken away or added."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from vertumnus.commandline import figure_sources
from vertumnus.commandline.figure_kept import MADE_OF, Kept, MadeOf
from vertumnus.commandline.figure_sources import given, of_report, of_runs, of_traces
from vertumnus.commandline.figure_wanted import Wanted, chosen
from vertumnus.records.provenance import RunStart
from vertumnus.records.sweeps import SweepJob, SweepRecord, write_sweep

SWEEP = "prefill_times-0"
REPORT = {"figure2.svg": b"<svg/>", "report.md": b"# Report"}
RUNS, OUT, TRACE = Path("runs"), Path("figures"), Path("trace.jsonl")


def wanted(**changes: object) -> Wanted:
    """Fig. 2, all of it."""
    return Wanted(chosen(["figure2"]), [], RUNS, [], False, False)._replace(**changes)


def a_run(run_id: str, job: str) -> None:
    """The folder of a run of *job*, ended."""
    folder = RUNS / run_id
    folder.mkdir(parents=True)
    start = RunStart(run_id=run_id, name="a", overrides=(), asked_hash=job, code_hash="code")
    (folder / "_STARTED.json").write_bytes(msgspec.json.encode(start))
    for name in ("_SUCCESS.json", "requests.parquet", "runs.parquet"):
        (folder / name).write_text("content")


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kept:
    """A report of a sweep of two jobs, with a user's config, a trace, a stranger's run and other code."""
    monkeypatch.chdir(tmp_path)
    source = tmp_path / "package" / "policy" / "rule.py"
    config = tmp_path / "conf" / "profile" / "mine.yaml"
    shared = tmp_path / "shared" / "theirs.yaml"
    for file in (source, config, shared, TRACE):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("# once")
    (tmp_path / "conf" / "model").symlink_to(shared.parent)
    (tmp_path / "conf" / "loop").symlink_to(tmp_path / "conf")
    monkeypatch.setattr(figure_sources, "files", lambda _: tmp_path / "package")
    monkeypatch.setattr(
        figure_sources, "distributions", lambda: [SimpleNamespace(name="hydra", version="1.3")]
    )
    for run_id, job in (("01A", "first"), ("01B", "second"), ("01C", "stranger")):
        a_run(run_id, job)
    jobs = [
        SweepJob(words=(), config_hash=job, code_hash="code", is_live=False) for job in ("first", "second")
    ]
    write_sweep(RUNS, SweepRecord(sweep=SWEEP, words=(), jobs=tuple(jobs)))
    parts = {**begun(), **of_traces([str(TRACE)]), **of_runs(RUNS, [SWEEP]), **of_report(REPORT)}
    made_of = MadeOf(
        parts=parts, sweeps=(SWEEP,), traces=(str(TRACE),), files=tuple(REPORT), pages=("report.md",)
    )
    OUT.mkdir()
    for name, content in {**REPORT, MADE_OF: made_of.encoded}.items():
        (OUT / name).write_bytes(content)
    found = Kept.find(OUT)
    assert found is not None
    return found


def begun() -> dict[str, str]:
    """What a pass of the whole of Fig. 2 would begin from now."""
    parts = given(wanted())
    assert parts is not None
    return parts


def removed(path: str) -> Callable[[], None]:
    """Take the file or folder *path* away."""
    return lambda: shutil.rmtree(path) if Path(path).is_dir() else os.remove(path)


def written(path: str, text: str = "# twice") -> Callable[[], None]:
    """Write *text* into the file *path*, new or not."""

    def write() -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text)

    return write


def rewritten(path: str) -> Callable[[], None]:
    """Give the file *path* other content of the same length, and its old time back."""

    def rewrite() -> None:
        file = Path(path)
        before = file.stat()
        while file.stat().st_ctime_ns == before.st_ctime_ns:  # the file system's clock ticks in milliseconds
            file.write_text("CONTENT")
            os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

    return rewrite


def test_what_has_not_changed_holds(kept: Kept) -> None:
    """Neither has a report changed by the run of another config, nor by what else lies in its folder."""
    assert kept.changed(begun(), RUNS) == []
    a_run("01D", "another stranger")
    written("figures/notes.txt")()
    removed("runs/01C")()
    assert kept.changed(begun(), RUNS) == []
    assert kept.pages == [OUT / "report.md"]


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("runs", removed("runs/01A")),
        ("runs", removed("runs/01B/requests.parquet")),
        ("runs", removed("runs/01B/_SUCCESS.json")),
        ("runs", removed("runs/01B/_STARTED.json")),
        ("runs", written("runs/01B/windows.parquet")),
        ("runs", rewritten("runs/01A/requests.parquet")),
        ("runs", lambda: a_run("01D", "second")),
        ("runs", removed("runs")),
        ("sweeps", removed(f"runs/sweeps/{SWEEP}.json")),
        ("sweeps", written(f"runs/sweeps/{SWEEP}.json", "damaged")),
        ("trace files", written("trace.jsonl", "{}")),
        ("trace files", removed("trace.jsonl")),
        ("the report", removed("figures/figure2.svg")),
        ("the report", written("figures/report.md")),
        ("configs", written("conf/profile/mine.yaml")),
        ("configs", written("conf/experiment/prefill_times.yaml")),
        ("configs", removed("conf/profile/mine.yaml")),
        ("configs", written("shared/theirs.yaml")),
        ("configs", lambda: Path("conf", "slo").symlink_to(Path("conf", "profile").absolute())),
        ("the code", written("package/policy/rule.py")),
        ("the code", written("package/report.sql")),
        ("the code", removed("package/policy/rule.py")),
    ],
)
def test_each_change_is_found(kept: Kept, part: str, change: Callable[[], None]) -> None:
    """Whatever is taken away, changed or added is told by the part that it belongs to."""
    change()
    assert part in kept.changed(begun(), RUNS)


def test_another_version_of_a_package_is_a_change(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever it is: what composes, computes, stores, reads and draws is not all named by us."""
    monkeypatch.setattr(
        figure_sources, "distributions", lambda: [SimpleNamespace(name="hydra", version="1.4")]
    )
    assert kept.changed(begun(), RUNS) == ["installed packages"]


@pytest.mark.parametrize(
    "asked",
    [
        {"entries": chosen(["figure3"])},
        {"overrides": ["seed=1"]},
        {"runs_dir": Path("other")},
        {"only": ["seed=1"]},
        {"is_full": True},
        {"is_simulated": True},
    ],
)
def test_another_command_is_not_its_own(kept: Kept, asked: dict[str, object]) -> None:
    """Another figure, override, folder or flag makes another report."""
    parts = given(wanted(**asked))
    assert kept.is_of(begun()) and parts is not None and not kept.is_of(parts)


def test_another_folder_is_another_command(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """The runs and configs of a relative path lie elsewhere there."""
    monkeypatch.chdir(RUNS)
    assert not kept.is_of(begun())


@pytest.mark.parametrize("text", ["path: ${oc.env:HOME}/trace.jsonl", "name: a-${now:%H}"])
def test_what_no_file_tells_is_never_kept(kept: Kept, text: str) -> None:
    """A config that takes values from the environment or the clock may be another any time."""
    written("conf/workload/mine.yaml", text)()
    assert given(wanted()) is None


@pytest.mark.parametrize(
    "word", ["workload.path=${oc.env:HOME}/trace.jsonl", "hydra.searchpath=[file:///elsewhere]"]
)
def test_words_that_no_file_tells_are_never_kept(kept: Kept, word: str) -> None:
    """Nor does anybody know what lies in a folder of configs that is named so."""
    assert given(wanted(overrides=[word])) is None


@pytest.mark.parametrize("content", ["", "{}", '{"parts": {}, "unknown": 1}'])
def test_what_cannot_be_read_is_no_kept_report(kept: Kept, content: str) -> None:
    """Cut off, damaged or of another version: the report is made again."""
    written(f"figures/{MADE_OF}", content)()
    assert Kept.find(OUT) is None
