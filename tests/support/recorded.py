"""Recorded runs to test with: the facts of requests' lives, and whole runs on the disk."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from tests.support.builders import BLOCK_TOKENS, a_profile
from vertumnus.domain.cluster import Composition, CpGroup, Lattice
from vertumnus.domain.codec import FACT, INPUT, ORDER, Record
from vertumnus.domain.facts import (
    EpochAdopted,
    Evicted,
    FirstTokenEmitted,
    ForecastFinished,
    HandoffFinished,
    Installed,
    OperatorActed,
    RequestArrived,
    RequestEnded,
    RequestsReturned,
    StepFinished,
    StepItem,
    StepStarted,
    TimerFired,
    TransferFinished,
    TransferStarted,
    WorkerDrained,
    WorkerFormed,
)
from vertumnus.domain.forecast import ForecastOutcome
from vertumnus.domain.move import Move
from vertumnus.domain.orders import (
    AdoptEpoch,
    Answer,
    CloseTransition,
    DegreeHeat,
    Drain,
    Forecast,
    NoteScan,
    NoteWindow,
    Order,
    Prefill,
    Reopen,
    Transfer,
    TransferReason,
)
from vertumnus.domain.request import Request
from vertumnus.domain.units import SECOND, Nanoseconds
from vertumnus.records.config import Measurement
from vertumnus.records.log import LogHeader
from vertumnus.records.provenance import RunStart
from vertumnus.records.recorder import Recorder
from vertumnus.records.run_dir import RunDir
from vertumnus.records.verdict import Books

WORKERS = (CpGroup(0, 2), CpGroup(2, 1), CpGroup(3, 1))
MERGED = CpGroup(2, 2)
"""What the last two become when they merge."""
BALANCED = Books(ledger_ns=0, pinned_blocks=0, blocks_in_use=7, blocks_held=7)


def a_header(backend: str = "sim", records: Measurement | None = None) -> LogHeader:
    """One degree-2 worker beside two degree-1 workers; metrics leave nothing out."""
    return LogHeader(
        code_version="1.2.3",
        config={
            "seed": 0,
            "policy": {"name": "paper", "beta": 1.0},
            "controller": {"name": "manual"},
            "workload": {"name": "made up"},
            "arrival": {"process": "trace"},
        },
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


def a_merge(at: Nanoseconds, epoch: int = 1) -> list[Record]:
    """Return a merge of 2x1 and 3x1 that Ann asks for at *at*; one request is redirected.

    3x1 is at a boundary after 2 s and waits 2 s for 2x1; the switch takes 1 s and frees 3 doubles.
    """
    left, right = sources = MERGED.halves
    formed = at + 5 * SECOND
    return [
        Record(INPUT, OperatorActed(at, 0, "ann", "merge", sources)),
        Record(ORDER, Answer(0, True, "")),
        *(Record(ORDER, Drain(worker)) for worker in sources),
        Record(FACT, RequestsReturned(at, left, (900,), "draining", is_failure=False)),
        Record(FACT, WorkerDrained(at + 2 * SECOND, right)),
        Record(FACT, WorkerDrained(at + 4 * SECOND, left)),
        Record(ORDER, AdoptEpoch((MERGED,), epoch)),
        *(Record(FACT, EpochAdopted(formed, rank, epoch, MERGED)) for rank in MERGED.ranks),
        Record(FACT, WorkerFormed(formed, MERGED, epoch, (Evicted(2, (7, 8)), Evicted(3, (9,))))),
        Record(ORDER, CloseTransition(epoch, "merge", sources, (MERGED,), "committed", "")),
        Record(ORDER, Reopen(MERGED)),
    ]


def a_split(at: Nanoseconds, epoch: int = 2) -> list[Record]:
    """Return a split of the idle 2x2 by the controller at *at*: its switch takes 1 s."""
    targets = MERGED.halves
    formed = at + SECOND
    return [
        Record(INPUT, TimerFired(at, "window", at)),
        Record(ORDER, Drain(MERGED)),
        Record(FACT, WorkerDrained(at, MERGED)),
        Record(ORDER, AdoptEpoch(targets, epoch)),
        *(Record(FACT, EpochAdopted(formed, worker.first_rank, epoch, worker)) for worker in targets),
        *(Record(FACT, WorkerFormed(formed, worker, epoch, ())) for worker in targets),
        Record(ORDER, CloseTransition(epoch, "split", (MERGED,), targets, "committed", "")),
        *(Record(ORDER, Reopen(worker)) for worker in targets),
    ]


def a_window(index: int, action: str = "", **changes: object) -> list[Record]:
    """Return the end of a window of 10 s in which 25 requests brought 12 s of work for 20 s of capacity."""
    start, end = index * 10 * SECOND, (index + 1) * 10 * SECOND
    note = NoteWindow(index, start, end, 25, 12 * SECOND, 20 * SECOND, 0.2, "merge", 2, action, "why")
    return [
        Record(INPUT, TimerFired(end, "window", end)),
        Record(ORDER, replace(note, **changes)),
    ]


def a_copy(at: Nanoseconds, transfer_id: int = 1, reason: TransferReason = "reconcile") -> list[Record]:
    """Return a copy of 2 MiB in 3 s: of three blocks one is at its destination 2x1, rank 2, already."""
    order = Transfer(transfer_id, (1, 2, 3, 4), 1, (3, 2, 3), WORKERS[1], reason, 5, "reconcile")
    done = at + 3 * SECOND
    return [
        Record(INPUT, TimerFired(at, "scan", at)),
        Record(ORDER, NoteScan(0, 5, (DegreeHeat(1, 4, 2.5, SECOND),), (), 0, 1, 0, 0)),
        Record(ORDER, order),
        Record(FACT, TransferStarted(at, transfer_id, WORKERS[1], ())),
        Record(FACT, TransferFinished(done, transfer_id, WORKERS[1], 1, (2, 2, 2), 2 * 2**20, 2 * SECOND)),
    ]


def a_forecast(at: Nanoseconds, forecast_id: int = 1, hindsight_of: int | None = None) -> list[Record]:
    """Return a forecast over 10 s, answered after 1 s: staying would take 4 s, merging 2x1 and 3x1 3 s."""
    move = Move("merge", MERGED.halves, (MERGED,))
    outcomes = (
        ForecastOutcome(None, 8, 8, 4 * SECOND, 5 * SECOND, 0.5),
        ForecastOutcome(move, 8, 7, 3 * SECOND, 4 * SECOND, None, 2 * SECOND, SECOND, 0, 2, 512),
    )
    return [
        Record(INPUT, TimerFired(at, "window", at)),
        Record(ORDER, Forecast(forecast_id, (move,), 10 * SECOND, 1, 1.25, True, hindsight_of)),
        Record(INPUT, ForecastFinished(at + SECOND, forecast_id, outcomes)),
    ]


def a_changing_history() -> list[Record]:
    """Return a dozen requests on a pool that is observed, copies blocks, and merges two workers at 20 s."""
    moves = [a_copy(0), a_window(0), a_window(1), a_forecast(19 * SECOND), a_merge(20 * SECOND)]
    return told_in_order([a_history(12), *moves])


def a_run(
    runs_dir: Path,
    run_id: str,
    records: Sequence[Record] | None = None,
    header: LogHeader | None = None,
    name: str = "trial",
    **started: object,
) -> RunDir:
    """Leave a finished run of *records* below *runs_dir*; *started* are fields of its RunStart."""
    run, recorder = a_run_under_way(runs_dir, run_id, records, header, name, **started)
    recorder.finish("finished", BALANCED, wall_s=0.5)
    return run


def a_run_under_way(
    runs_dir: Path,
    run_id: str,
    records: Sequence[Record] | None = None,
    header: LogHeader | None = None,
    name: str = "trial",
    **started: object,
) -> tuple[RunDir, Recorder]:
    """Begin a run and tell it *records*; *started* are fields of its RunStart."""
    start = RunStart(run_id=run_id, name=name, overrides=("seed=0",), cpu_model="a cpu", cores=2)
    start = replace(start, **started)
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
