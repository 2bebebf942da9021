"""A run whose follow-ups wait: from the command line's words to the tables, audited."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.run.test_simulated import a_config, run
from tests.support.traces import a_line, write_trace
from vertumnus.domain.errors import ConfigError
from vertumnus.records.run_dir import find_run
from vertumnus.run.audit import audit_run
from vertumnus.run.plan import plan
from vertumnus.run.stream import load_stream

CLOSED = ("arrival.closed_loop=true", "arrival.rate=200")


def test_turns_wait_for_answers_in_a_simulated_run(tmp_path: Path) -> None:
    """At 200 req/s, where an open loop lets turns overtake answers, none precedes the one it continues."""
    waits = {}
    for words in (CLOSED, CLOSED[1:]):
        rows = {
            row["request_id"]: row
            for row in pq.read_table(run(tmp_path, *words) / "requests.parquet").to_pylist()
        }
        assert len(rows) == 400
        stream = load_stream(a_config(tmp_path))
        latest: dict[str, int] = {}
        waits[words] = []
        for place, row in enumerate(stream.rows):
            if row.follows in latest:
                before = rows[latest[row.follows]]
                waits[words].append(rows[place]["arrival_s"] - before["arrival_s"] - before["e2e_s"])
            if row.session is not None:
                latest[row.session] = place
        assert audit_run(find_run(tmp_path).run).is_clean
    assert len(waits[CLOSED]) > 5 and min(waits[CLOSED]) >= -1e-9
    assert min(waits[CLOSED[1:]]) < 0


def test_a_trace_without_sessions_is_refused(tmp_path: Path) -> None:
    """A key that would do nothing is an error; the plan says what the arrivals are."""
    config = a_config(tmp_path, "workload=l_eval", *CLOSED)
    with pytest.raises(ConfigError, match=r"arrival.closed_loop: found true, but no request of l_eval"):
        load_stream(config)
    assert "follow-ups after the answer before them" in plan(a_config(tmp_path, *CLOSED))


def test_turns_of_a_file_are_found_by_their_prompts(tmp_path: Path) -> None:
    """A published trace names no session: the second row begins with the first one's blocks."""
    lines = [
        a_line(timestamp=0, input_length=1_024, hash_ids=[0, 1]),
        a_line(timestamp=10, input_length=2_000, hash_ids=[0, 1, 2, 3]),
    ]
    path = write_trace(tmp_path / "t.jsonl", *lines)
    words = ("workload=conversation", f"workload.path={path}", "arrival=trace", "arrival.closed_loop=true")
    first, second = pq.read_table(run(tmp_path, *words) / "requests.parquet").to_pylist()
    assert second["arrival_s"] == pytest.approx(first["arrival_s"] + first["e2e_s"])
    assert second["cached_tokens"] == 1_024
