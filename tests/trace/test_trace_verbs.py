"""``vertumnus trace``: lint, stats, convert and capture as a user calls them, with wrong input, too."""

import gzip
import json
import stat
from pathlib import Path

import pytest

from tests.support.shared import SHARED
from tests.support.traces import a_line, write_trace
from vertumnus.cli import main
from vertumnus.commandline.exit_codes import BAD_INPUT, OK

SAMPLES = Path(__file__).parent / "samples"
GOLDEN = SHARED / "data/traces/mooncake_conversation_trace.jsonl.gz" if SHARED else None


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("sample", sorted(path.name for path in SAMPLES.iterdir()))
def test_the_format_is_read_off_the_first_line(sample: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every sample says what it is; one has rows without output, which lint refuses and stats leave out."""
    is_clean = sample != "burst_gpt.csv"
    assert main(["trace", "lint", str(SAMPLES / sample)]) == (OK if is_clean else BAD_INPUT)
    format_name = {"azure_2023": "azure", "azure_2024": "azure", "burst_gpt_sessions": "burst_gpt"}
    stem = Path(sample).stem
    assert main(["trace", "stats", str(SAMPLES / sample)]) == OK
    out = capsys.readouterr().out
    assert f"{sample} ({format_name.get(stem, stem)}" in out
    assert is_clean or "1 row without output dropped" in out


def test_lint_names_file_line_found_and_expected(capsys: pytest.CaptureFixture[str]) -> None:
    """Case 1: 20 tokens with two ids at block 512, among good rows; all problems come at once."""
    good = [a_line(timestamp=100 * n) for n in range(5)]
    bad = a_line(timestamp=600, input_length=20)
    write_trace(Path("t.jsonl"), *good, bad, a_line(output_length=-1))
    assert main(["trace", "lint", "t.jsonl"]) == BAD_INPUT
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "t.jsonl:6: hash_ids: expected 1 block (ceil(20 / 512)), found 2",
        "t.jsonl:7: output_length: found -1, must be a whole number from 1 to 2147483647",
    ]
    assert err == "2 problems\n"


def test_stats_as_json_have_every_key(capsys: pytest.CaptureFixture[str]) -> None:
    """The numbers that other programs read, by their names."""
    assert main(["trace", "stats", str(SAMPLES / "mooncake.jsonl"), "--json"]) == OK
    document = json.loads(capsys.readouterr().out)
    expected = {
        "requests": 4,
        "sum_input_tokens": 5_048,
        "span_s": 6.104,
        "distinct_timestamps": 3,
        "max_same_timestamp": 2,
        "distinct_blocks": 6,
        "oracle_reuse": 2_560 / 5_048,
        "oracle_reuse_partial": 2_736 / 5_048,
        "mean_input_tokens": 1_262.0,
        "p99_input_tokens": pytest.approx(2_022.56),
        "mean_output_tokens": 14.75,
        "p99_output_tokens": pytest.approx(30.67),
        "one_token_outputs": 1,
        "full_hits": 1,
    }
    assert {key: document[key] for key in expected} == expected
    assert document["notes"] == []


@pytest.mark.skipif(GOLDEN is None or not GOLDEN.is_file(), reason="the trace is not beside the checkout")
def test_the_golden_numbers_come_out_of_the_verb(capsys: pytest.CaptureFixture[str]) -> None:
    """The published conversation trace, through the command line, and back from Parquet byte for byte."""
    assert main(["trace", "stats", str(GOLDEN), "--json"]) == OK
    found = json.loads(capsys.readouterr().out)
    assert (found["requests"], found["sum_input_tokens"], found["span_s"]) == (12_031, 144_793_823, 3_536.999)
    assert (found["distinct_timestamps"], found["max_same_timestamp"]) == (1_180, 28)
    assert (found["distinct_blocks"], found["full_hits"], found["one_token_outputs"]) == (182_790, 118, 72)
    assert f"{found['oracle_reuse']:.6f} {found['oracle_reuse_partial']:.6f}" == "0.373380 0.373624"
    assert any(note.startswith("ticks: 12,031 requests share 1,180 stamps") for note in found["notes"])
    assert main(["trace", "convert", str(GOLDEN), "t.parquet"]) == OK
    assert main(["trace", "convert", "t.parquet", "t.jsonl"]) == OK
    assert Path("t.jsonl").read_bytes() == gzip.decompress(GOLDEN.read_bytes() if GOLDEN else b"")


def test_stats_of_a_generator_and_a_window(capsys: pytest.CaptureFixture[str]) -> None:
    """generator= and seed= stand for a file; keys choose the window and the scale."""
    words = ["generator=l_eval", "seed=3", "requests=200", "token_scale=0.0625"]
    assert main(["trace", "stats", *words]) == OK
    out = capsys.readouterr().out
    assert out.startswith("l_eval generator, seed 3, 200 of 2,369 requests, lengths / 16\n")


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_stats_draw_a_figure(suffix: str) -> None:
    """A picture of the named kind, also of a trace without ids."""
    pytest.importorskip("matplotlib")
    for sample in ("mooncake.jsonl", "azure_2023.csv"):
        assert main(["trace", "stats", str(SAMPLES / sample), "--figure", f"{sample}.{suffix}"]) == OK
        assert Path(f"{sample}.{suffix}").read_bytes()[:5] in (b"\x89PNG\r", b"<?xml")


@pytest.mark.parametrize(
    "sample", ["mooncake_plus.jsonl", "bailian.jsonl", "azure_2023.csv", "share_gpt.jsonl"]
)
def test_what_parquet_holds_is_what_was_read(sample: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Any format to Parquet keeps all that statistics can see."""
    assert main(["trace", "stats", str(SAMPLES / sample), "--json"]) == OK
    before = json.loads(capsys.readouterr().out)
    assert main(["trace", "convert", str(SAMPLES / sample), "t.parquet"]) == OK
    assert main(["trace", "stats", "t.parquet", "--json"]) == OK
    after = json.loads(capsys.readouterr().out)
    assert {**before, "name": ""} == {**after, "name": ""}


def test_mooncake_plus_comes_back_from_parquet() -> None:
    """Sessions, pauses and missing ids survive both ways; stamps are filled in."""
    assert main(["trace", "convert", str(SAMPLES / "mooncake_plus.jsonl"), "t.parquet"]) == OK
    assert main(["trace", "convert", "t.parquet", "t.jsonl.gz", "--to", "mooncake_plus"]) == OK
    records = [json.loads(line) for line in gzip.decompress(Path("t.jsonl.gz").read_bytes()).splitlines()]
    assert [record["timestamp"] for record in records] == [0, 500, 2_000, 3_500, 4_000]
    assert records[2] == {
        "session_id": "s-1",
        "timestamp": 2_000,
        "input_length": 900,
        "output_length": 12,
        "hash_ids": [7, 9],
        "delay": 2_000,
    }
    assert "hash_ids" not in records[1] and "session_id" not in records[4]


def test_dates_become_times_from_the_first_row(capsys: pytest.CaptureFixture[str]) -> None:
    """Azure's stamps have 100 ns; in whole milliseconds they are rounded, and that is told."""
    words = ["trace", "convert", str(SAMPLES / "azure_2023.csv"), "t.jsonl", "--to", "mooncake_plus"]
    assert main(words) == OK
    first, second, _ = Path("t.jsonl").read_text().splitlines()
    assert json.loads(first)["timestamp"] == 0 and json.loads(second)["timestamp"] == 4_314.579
    write_trace(Path("b.jsonl"), *(a_line(timestamp=t, chat_id=1, parent_chat_id=-1) for t in (1.5, 2.0006)))
    assert main(["trace", "convert", "b.jsonl", "m.jsonl", "block_tokens=512"]) == OK
    assert "rounded to whole milliseconds: 1 time" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["stats"], "FILE: required, but not given; see vertumnus trace stats --help"),
        (["stats", "gone.jsonl"], "gone.jsonl: no such file"),
        (["stats", "/dev/null"], "/dev/null: is no file on a disk, and a trace is read more than once"),
        (["stats", "t.jsonl", "unit=sec"], "unit: found 'sec', must be one of ms, s"),
        (["stats", "t.jsonl", "untl=s"], "untl=s: no such file, and untl is no key; did you mean unit?"),
        (["stats", "t.jsonl", "format=mooncak"], "format: found 'mooncak', must be one of"),
        (["stats", "seed=1"], "no trace: name a file, or a generator"),
        (["stats", "generator=l_eval", "seed=-1"], "seed: found -1, must be a whole number, at least 0"),
        (
            ["stats", "t.jsonl", "--figure", "t.gif"],
            "--figure: found t.gif, its name must end in one of .png, .svg, .pdf",
        ),
        (["stats", "t.jsonl", "--force"], "--force: has no effect without --figure"),
        (["stats", "t.jsonl", "start_s=1e9"], "no request arrives from 1e+09 s to the end"),
        (["stats", "empty.jsonl"], "empty.jsonl: the file is empty"),
        (["stats", "odd.txt"], "odd.txt:1: no known format; found 'hello, world'; name it: format=mooncake|"),
        (["convert", "t.jsonl"], "found t.jsonl, must be one to read and one to write"),
        (["convert", "generator=l_eval"], "found no file, must be one to write"),
        (
            ["convert", "t.jsonl", "out.csv"],
            "out.csv: must end in .jsonl, .jsonl.gz, .parquet, or say --to mooncake|",
        ),
        (
            ["convert", "t.jsonl", "odd.txt", "--to", "mooncake"],
            "odd.txt: is there already; --force replaces it",
        ),
        (["capture", "gone.jsonl", "out.jsonl"], "gone.jsonl: no such file"),
        (["convert", "t.jsonl", "t.jsonl", "--force"], "t.jsonl: is read from, it cannot be written to"),
        (["convert", "t.jsonl", "no/t.parquet"], "there is no folder 'no'"),
        (["convert", "t.jsonl", "out.parquet.gz", "--to", "parquet"], "a Parquet file is packed already"),
        (["convert", "azure_2023.csv", "out.jsonl"], "row 1 has no block ids, which mooncake needs"),
        (["convert", "share_gpt.jsonl", "out.jsonl"], "the trace has no times, which mooncake needs"),
        (["convert", "prompts.jsonl", "out.jsonl"], "use vertumnus trace capture, which salts it"),
        (
            ["capture", "prompts.jsonl", "out.jsonl", "--salt-file", "odd.txt"],
            "must hold 64 hexadecimal digits",
        ),
        (
            ["capture", "t.jsonl", "out.jsonl"],
            "t.jsonl:1: found no prompt; must have one of messages, prompt",
        ),
        (["linnt", "t.jsonl"], "trace linnt: no such verb; did you mean lint?"),
        (["download", "nope"], "download nope: no such trace"),
        (
            ["download", "mooncake_toolagent", "size=3"],
            "size=3: must be one of path=..., url=..., sha256=...",
        ),
    ],
)
def test_mistakes_are_one_message_and_leave_nothing(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2, the key or file named, and no file written."""
    write_trace(Path("t.jsonl"), a_line(), a_line(timestamp=5))
    write_trace(Path("prompts.jsonl"), json.dumps({"prompt": "Why?", "time": 3, "output_tokens": 2}))
    write_trace(Path("odd.txt"), "hello, world")
    write_trace(Path("empty.jsonl"), end="")
    for sample in ("azure_2023.csv", "share_gpt.jsonl"):
        Path(sample).write_bytes((SAMPLES / sample).read_bytes())
    before = sorted(Path().iterdir())
    assert main(["trace", *words]) == BAD_INPUT
    assert message in capsys.readouterr().err.replace("\n", " ")
    assert sorted(Path().iterdir()) == before


SECRET = "never reveal the launch code 7319"
CHAT = {"role": "system", "content": f"You answer briefly and {SECRET}."}


def _log(path: Path) -> Path:
    """Write a chat of two turns, an access log's line and a plain prompt, out of order."""
    asked = {"role": "user", "content": "What is context parallelism?"}
    answer = {"role": "assistant", "content": "Several GPUs share one prompt."}
    again = {"role": "user", "content": [{"type": "text", "text": "And tensor parallelism?"}]}
    lines = [
        {
            "timestamp": "2026-03-01T09:00:07Z",
            "session_id": "alice",
            "messages": [CHAT, asked, answer, again],
            "response": {
                "choices": [{"message": {"role": "assistant", "content": "They share each layer."}}]
            },
        },
        {
            "timestamp": "2026-03-01T10:00:00.25+01:00",
            "session_id": "alice",
            "messages": [CHAT, asked],
            "usage": {"prompt_tokens": 24, "completion_tokens": 41},
        },
        {
            "time": 1_772_355_605.5,
            "request": {"prompt": f"Summarise: {SECRET}"},
            "response": {"usage": {"prompt_tokens": 8, "completion_tokens": 5}},
        },
        {"ts": 1_772_355_606_000, "prompt": "Hello", "completion": "Hi there"},
    ]
    return write_trace(path, *map(json.dumps, lines))


def test_capture_keeps_lengths_times_and_sharing_and_no_word(capsys: pytest.CaptureFixture[str]) -> None:
    """Times from the first request on, in order; turns share blocks; no text, name or date is left."""
    _log(Path("chat.jsonl"))
    words = ["chat.jsonl", "out.jsonl", "block_tokens=4", "chars_per_token=4", "--to", "mooncake_plus"]
    assert main(["trace", "capture", *words]) == OK
    text = Path("out.jsonl").read_text()
    first, access, hello, second = map(json.loads, text.splitlines())
    assert [row["timestamp"] for row in (first, access, hello, second)] == [0, 5_250, 5_750, 6_750]
    assert [row["output_length"] for row in (first, access, hello, second)] == [41, 5, 2, 6]
    shared = len(f"system\n{CHAT['content']}\nuser\nWhat is context parallelism?\n") // 16
    assert first["hash_ids"][:shared] == second["hash_ids"][:shared]
    assert first["hash_ids"][shared] != second["hash_ids"][shared]
    assert first["session_id"] == second["session_id"] and "session_id" not in access
    assert not [word for word in ("alice", "launch", "7319", "2026", "17723") if word in text]
    assert "the log's own counts make" in capsys.readouterr().err


def test_traces_under_one_salt_share_ids_and_under_two_nothing() -> None:
    """Case 3: the salt file is made once, for its owner alone; without one the salt is forgotten."""
    _log(Path("chat.jsonl"))

    def ids(out: str, *words: str) -> set[int]:
        assert main(["trace", "capture", "chat.jsonl", out, "block_tokens=4", *words]) == OK
        return {each for line in Path(out).read_text().splitlines() for each in json.loads(line)["hash_ids"]}

    salted = ids("a.jsonl", "--salt-file", "salt")
    assert stat.S_IMODE(Path("salt").stat().st_mode) == 0o600
    assert ids("b.jsonl", "--salt-file", "salt") == salted
    assert not ids("c.jsonl") & salted and not ids("d.jsonl") & ids("e.jsonl")


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ({"prompt": "a"}, "found no time; must have one of timestamp, time, created_at, created, ts"),
        ({"prompt": "a", "time": "yesterday"}, 'time: found "yesterday", must be a date, or seconds'),
        ({"prompt": "a", "time": True}, "time: found true, must be a date, or seconds"),
        ({"prompt": "", "time": 1}, "the prompt is empty"),
        ({"messages": [3], "time": 1}, "messages: found 3, must be objects with role and content"),
        ({"prompt": "a", "time": 1, "usage": {"completion_tokens": 0}}, "no output: found 0"),
    ],
)
def test_a_line_that_cannot_be_captured_is_named(
    record: dict[str, object], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """By file and line; bad_rows=skip leaves it out and counts it."""
    good = json.dumps({"prompt": "Why?", "time": 3, "output_tokens": 2})
    write_trace(Path("log.jsonl"), good, json.dumps(record))
    assert main(["trace", "capture", "log.jsonl", "out.jsonl"]) == BAD_INPUT
    assert f"log.jsonl:2: {problem}" in capsys.readouterr().err
    assert not Path("out.jsonl").exists()
    assert main(["trace", "capture", "log.jsonl", "out.jsonl", "bad_rows=skip"]) == OK
    assert "1 bad row skipped" in capsys.readouterr().err
