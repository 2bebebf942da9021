"""Recorded runs to test with: the facts of requests' lives, and whole runs on the disk."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from tests.support.builders import BLOCK_TOKENS, a_profile
from vertumnus.domain.cluster import Composition, CpGroup, Lattice
from vertumnus.domain.codec import FACT, INPUT, ORDER, Record
from vertumnus.domain.facts import (
    FirstTokenEmitted,
    HandoffFinished,
    Installed,
    RequestArrived,
    RequestEnded,
    StepFinished,
    StepItem,
    StepStarted,
)
from vertumnus.domain.orders import Order, Prefill
from vertumnus.domain.request import Request
from vertumnus.domain.units import SECOND, Nanoseconds
from vertumnus.records.config import Measurement
from vertumnus.records.log import LogHeader
from vertumnus.records.provenance import RunStart
from vertumnus.records.recorder import Recorder
from vertumnus.records.run_dir import RunDir
from vertumnus.records.verdict import Books

WORKERS = (CpGroup(0, 2), CpGroup(2, 1), CpGroup(3, 1))
BALANCED = Books(ledger_ns=0, pinned_blocks=0, blocks_in_use=7, blocks_held=7)


def a_header(backend: str = "sim", records: Measurement | None = None) -> LogHeader:
    """One degree-2 worker beside two degree-1 workers; metrics leave nothing out."""
    return LogHeader(
        code_version="1.2.3",
        config={"seed": 0, "policy": {"beta": 1.0}},
        profile=a_profile(),
        lattice=Lattice(4, (1, 2), 4),
        composition=Composition(WORKERS),
        block_tokens=BLOCK_TOKENS,
        seed=0,
        backend="live" if backend == "live" else "sim",
        records=records or Measurement(warmup_share=0.0, length_bounds=(64, 256), worker_sample_s=1.0),
    )


def a_life(
    request: Request,
    worker: CpGroup = WORKERS[1],
    cached_tokens: int = 0,
    sent_late_ns: Nanoseconds = 0,
    queue_ns: Nanoseconds = SECOND,
    prefill_ns: Nanoseconds = 2 * SECOND,
    ext_ns: Nanoseconds = SECOND // 2,
    decode_ns: Nanoseconds = 3 * SECOND,
) -> list[Record]:
    """Return everything told of a request that finishes at its first attempt."""
    number = request.request_id
    arrived = request.arrival_ns + sent_late_ns
    started = arrived + queue_ns
    prefilled = started + prefill_ns
    first = prefilled + ext_ns
    item = StepItem(number, 0, cached_tokens)
    return [
        Record(INPUT, RequestArrived(arrived, request)),
        Record(ORDER, Prefill(number, 0, worker, 0, (), prefill_ns, cached_tokens)),
        Record(FACT, StepStarted(started, number, worker, 0, (item,), ())),
        Record(FACT, StepFinished(prefilled, number, worker, prefill_ns - 1, (Installed(number, 0, None),))),
        Record(FACT, HandoffFinished(first, number, 0, 0)),
        Record(FACT, FirstTokenEmitted(first, number, 0)),
        Record(FACT, RequestEnded(first + decode_ns, number, "finished", request.output_tokens)),
    ]


def told_in_order(lives: Iterable[Sequence[Record]]) -> list[Record]:
    """Interleave *lives* by time; an order keeps its place after the fact that it answers."""
    timed, now = [], 0
    for life in lives:
        for record in life:
            now = now if isinstance(record.body, Order) else record.body.at
            timed.append((now, record))
    return [record for _, record in sorted(timed, key=lambda pair: pair[0])]


def a_history(requests: int) -> list[Record]:
    """Return the records of *requests* requests of several lengths, some of them sharing a prefix."""
    lives = []
    for number in range(requests):
        blocks = 1 + number * 7 % 20
        keys = tuple(1_000 * (number % 3) + depth for depth in range(blocks))
        request = Request(
            number,
            number * SECOND,
            blocks * BLOCK_TOKENS + 1,
            1 + number % 4,
            keys,
            ttft_target_ns=3 * SECOND + number % 5 * SECOND // 4,
            tpot_target_ns=SECOND,
        )
        queue_ns = number % 4 * SECOND // 4
        lives.append(a_life(request, WORKERS[number % 3], cached_tokens=0, queue_ns=queue_ns))
    return told_in_order(lives)


def a_run(
    runs_dir: Path,
    run_id: str,
    records: Sequence[Record] | None = None,
    header: LogHeader | None = None,
    name: str = "trial",
) -> RunDir:
    """Leave a finished run of *records* below *runs_dir*."""
    run, recorder = a_run_under_way(runs_dir, run_id, records, header, name)
    recorder.finish("finished", BALANCED, wall_s=0.5)
    return run


def a_run_under_way(
    runs_dir: Path,
    run_id: str,
    records: Sequence[Record] | None = None,
    header: LogHeader | None = None,
    name: str = "trial",
) -> tuple[RunDir, Recorder]:
    """Begin a run and tell it *records*."""
    start = RunStart(run_id=run_id, name=name, overrides=("seed=0",), cpu_model="a cpu", cores=2)
    run = RunDir.create(runs_dir, start, "seed: 0\n")
    recorder = Recorder(run, header or a_header())
    for record in a_history(12) if records is None else records:
        recorder.record(*record)
    return run, recorder


def a_ulid(number: int) -> str:
    """Return a ULID-shaped id that sorts by *number*."""
    return f"01J{number:023d}"


def without_keys(request: Request) -> Request:
    """Return *request* with unknown content."""
    return replace(request, block_keys=None)
