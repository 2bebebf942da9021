"""The timeline of a run's workers as a Chrome trace, which ui.perfetto.dev and chrome://tracing open.

    workers       a track for each worker: its steps, and copies of blocks into it
    transitions   drain and switch of each split and merge
    counters      predicted work queued at each worker, and requests that wait in all queues

Times are the run's own: virtual in a simulated run, from the first arrival's clock in an executed one.
"""

import gzip
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from vertumnus.domain.errors import ConfigError
from vertumnus.domain.wording import counted
from vertumnus.records.atomic import write_whole
from vertumnus.report.output_file import file_problems
from vertumnus.report.store import query

Event: TypeAlias = dict[str, Any]
WORKERS, TRANSITIONS, COUNTERS = 1, 2, 3
"""What the viewer calls processes."""
ENDINGS = (".json", ".json.gz")

STEPS = """
SELECT worker_id, step_id, cp_degree, epoch,
       min(arrival_s + queue_s + cache_wait_s) AS start_s, max(prefill_s) AS length_s,
       list(request_id ORDER BY request_id) AS requests,
       list(request_id ORDER BY request_id) FILTER (status = 'cancelled') AS cancelled,
       CAST(sum(uncached_tokens) AS BIGINT) AS uncached_tokens,
       CAST(sum(cached_tokens) AS BIGINT) AS cached_tokens
FROM requests
WHERE run_id = $run_id AND prefill_s IS NOT NULL
GROUP BY ALL
ORDER BY start_s, worker_id, step_id
"""
COPIES = """
SELECT worker_id, transfer_id, purpose, origin, t_ns / 1e9 AS start_s, wait_s AS length_s, blocks,
       payload_bytes, for_request
FROM cache_ops
WHERE run_id = $run_id AND transfer_id IS NOT NULL AND wait_s IS NOT NULL
ORDER BY t_ns, transfer_id
"""
MOVES = """
SELECT kind, sources, targets, outcome, t_ns / 1e9 AS start_s, drain_s, switch_s, total_s, redirected_requests
FROM reconfigs
WHERE run_id = $run_id
ORDER BY t_ns, epoch
"""
QUEUES = """
SELECT worker_id, t_ns / 1e9 AS t_s, queued_s,
       sum(queued_requests) OVER (PARTITION BY t_ns) AS waiting,
       row_number() OVER (PARTITION BY t_ns ORDER BY worker_id) AS place
FROM workers
WHERE run_id = $run_id
ORDER BY t_ns, worker_id
"""


def write_trace(runs_dir: Path, run_id: str, file: Path) -> None:
    """Write the trace of the ended run *run_id* to *file*, packed where it ends in .gz.

    Raises ConfigError when the run did no step, or the file cannot be written.
    """
    events = list(_events(runs_dir, run_id))
    if not any(event["ph"] == "X" for event in events):
        raise ConfigError(f"run {run_id}: it did no step, so that there is no timeline")
    encoded = msgspec.json.encode({"displayTimeUnit": "ms", "traceEvents": events})
    data = gzip.compress(encoded, mtime=0) if file.suffix == ".gz" else encoded
    try:
        write_whole(file, lambda out: out.write(data))
    except OSError as error:
        raise ConfigError(f"--perfetto: {file}: cannot be written: {error.strerror}") from error


def require_writable(file: Path, *, replace: bool = False) -> None:
    """Raise ConfigError unless a trace can be written to *file*; *replace* lets it be there."""
    problems = list(file_problems("--perfetto", file, ENDINGS, replace=replace))
    if problems:
        raise ConfigError(*problems)


def _events(runs_dir: Path, run_id: str) -> Iterator[Event]:
    def rows(sql: str) -> list[dict[str, Any]]:
        return query(runs_dir, sql, {"run_id": run_id}, only=[run_id]).dicts()

    steps, copies, queues = rows(STEPS), rows(COPIES), rows(QUEUES)
    workers = {row["worker_id"] for row in (*steps, *copies, *queues)}
    threads = {worker: place for place, worker in enumerate(sorted(workers, key=_by_rank), 1)}
    yield from _names(threads)
    yield from (_step(row, threads[row["worker_id"]]) for row in steps)
    for row in copies:
        yield from _copy(row, threads[row["worker_id"]])
    for row in rows(MOVES):
        yield from _move(row)
    for row in queues:
        yield from _counters(row)


def _names(threads: Mapping[str, int]) -> Iterator[Event]:
    for pid, name in ((WORKERS, "workers"), (TRANSITIONS, "transitions"), (COUNTERS, "counters")):
        yield {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}
        yield {"ph": "M", "name": "process_sort_index", "pid": pid, "tid": 0, "args": {"sort_index": pid}}
    for worker, tid in threads.items():
        yield {
            "ph": "M",
            "name": "thread_name",
            "pid": WORKERS,
            "tid": tid,
            "args": {"name": f"worker {worker}"},
        }
        yield {
            "ph": "M",
            "name": "thread_sort_index",
            "pid": WORKERS,
            "tid": tid,
            "args": {"sort_index": tid},
        }


def _step(row: Mapping[str, Any], tid: int) -> Event:
    requests = row["requests"]
    name = f"request {requests[0]}" if len(requests) == 1 else counted(len(requests), "request")
    told = {key: row[key] for key in ("requests", "uncached_tokens", "cached_tokens", "cp_degree", "epoch")}
    if row["cancelled"]:
        told["cancelled"] = row["cancelled"]
    return _slice("prefill", name, WORKERS, tid, row["start_s"], row["length_s"], told)


def _copy(row: Mapping[str, Any], tid: int) -> Iterator[Event]:
    """Yield begin and end of a copy: several may be under way at a worker at once."""
    same = {"cat": "copy", "name": row["purpose"], "id": row["transfer_id"], "pid": WORKERS, "tid": tid}
    told = {key: row[key] for key in ("origin", "blocks", "payload_bytes", "for_request")}
    yield {**same, "ph": "b", "ts": _microseconds(row["start_s"]), "args": told}
    yield {**same, "ph": "e", "ts": _microseconds(row["start_s"] + row["length_s"])}


def _move(row: Mapping[str, Any]) -> Iterator[Event]:
    told = {key: row[key] for key in ("sources", "targets", "outcome", "redirected_requests")}
    start_s, drain_s, switch_s = row["start_s"], row["drain_s"], row["switch_s"]
    if drain_s is not None:
        yield _slice("move", f"{row['kind']}: drain", TRANSITIONS, 1, start_s, drain_s, told)
    if switch_s is not None:
        yield _slice(
            "move", f"{row['kind']}: switch", TRANSITIONS, 1, start_s + (drain_s or 0.0), switch_s, told
        )


def _counters(row: Mapping[str, Any]) -> Iterator[Event]:
    ts = _microseconds(row["t_s"])
    name = f"queued work [s] {row['worker_id']}"
    yield {"ph": "C", "name": name, "pid": COUNTERS, "ts": ts, "args": {"seconds": row["queued_s"]}}
    if row["place"] == 1:
        waiting = {"requests": int(row["waiting"])}
        yield {"ph": "C", "name": "waiting requests", "pid": COUNTERS, "ts": ts, "args": waiting}


def _slice(
    kind: str, name: str, pid: int, tid: int, start_s: float, length_s: float, args: Mapping[str, Any]
) -> Event:
    return {
        "ph": "X",
        "cat": kind,
        "name": name,
        "pid": pid,
        "tid": tid,
        "ts": _microseconds(start_s),
        "dur": _microseconds(length_s),
        "args": args,
    }


def _microseconds(seconds: float) -> float:
    return round(seconds * 1e6, 3)


def _by_rank(worker: str) -> tuple[int, int]:
    first, _, degree = worker.partition("x")
    return int(first), int(degree)
