"""What no placement can beat when requests come at one instant: least sums of completions, and whole runs."""

from itertools import permutations
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from tests.support.builders import (
    BLOCK_TOKENS,
    a_cluster,
    a_control_plane,
    a_profile,
    a_request,
    shared_prefix_requests,
)
from tests.support.recorded import WORKERS, a_header, a_run_under_way, a_ulid
from vertumnus.domain.request import Request
from vertumnus.policy.config import LeastLoadedPolicy, PaperPolicy, PolicyConfig, VertumnusPolicy
from vertumnus.records.verdict import Books
from vertumnus.report.reports import answer_report
from vertumnus.report.store import query
from vertumnus.serving.loop import Loop
from vertumnus.sim.durations import Durations
from vertumnus.sim.engine import SimEngine
from vertumnus.workers.fleet import Fleet

BOOKS = Books(ledger_ns=0, pinned_blocks=0, blocks_in_use=0, blocks_held=0)


def least(runs_dir: Path, requests: list[Request], policy: PolicyConfig, step_tokens: int = 0) -> dict:
    """Return the report of a run of *requests* without noise."""
    cluster = a_cluster(blocks_per_rank=256, step_tokens=step_tokens)
    config = a_header().config | {"cluster": {"step_tokens": step_tokens}}
    run, recorder = a_run_under_way(runs_dir, a_ulid(1), [], replace(a_header(), config=config))
    engine = SimEngine(Durations(a_profile(), 0, 0.0, link=cluster.link, block_tokens=BLOCK_TOKENS))
    Loop(engine, Fleet(cluster, BLOCK_TOKENS), a_control_plane(cluster, policy), recorder.record).serve(
        iter(requests)
    )
    recorder.finish("finished", BOOKS, wall_s=0.5)
    (row,) = answer_report(runs_dir, "least_ttft", run.run_id).dicts()
    return row


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("policy", [VertumnusPolicy(), PaperPolicy(), LeastLoadedPolicy()])
def test_no_run_is_below(tmp_path: Path, policy: PolicyConfig, seed: int) -> None:
    """Requests in bursts, with shared prefixes: the mean TTFT of no policy is below the bound of the run."""
    draw = Random(seed)
    lengths = [(draw.randrange(4), draw.randrange(12), draw.randrange(1, 20)) for _ in range(60)]
    requests = [
        replace(each, arrival_ns=each.request_id // 12 * 200_000_000)
        for each in shared_prefix_requests(lengths)
    ]
    row = least(tmp_path, requests, policy)
    assert (row["requests"], row["instants"], row["workers"]) == (60, 5, len(WORKERS))
    assert row["ttft_s"] >= row["together_s"] > row["bound_s"]
    assert row["over_together"] == pytest.approx(row["ttft_s"] / row["together_s"])


def test_requests_apart_share_nothing(tmp_path: Path) -> None:
    """Each at an instant of its own: the bound of the run is that of its requests."""
    requests = [a_request(number, number * 1_000, 100 + number) for number in range(9)]
    row = least(tmp_path, requests, VertumnusPolicy())
    assert row["together_s"] == pytest.approx(row["bound_s"])


def test_steps_of_several_requests_have_no_such_bound(tmp_path: Path) -> None:
    """Requests in one step pay its fixed cost once, which the bound charges to each."""
    row = least(tmp_path, [a_request(number) for number in range(9)], VertumnusPolicy(), step_tokens=4_000)
    assert (row["together_s"], row["over_together"]) == (None, None)
    assert row["over_bound"] > 1.0


@pytest.mark.parametrize("count", [1, 4, 5])
def test_it_is_the_least_of_all_orders(tmp_path: Path, count: int) -> None:
    """Of every order in which three equal workers could take the requests, none has a lower mean."""
    lengths = Random(count).sample(range(40, 3_000), count)
    requests = [a_request(number, 0, length) for number, length in enumerate(lengths)]
    row = least(tmp_path, requests, VertumnusPolicy())
    told = query(tmp_path, "SELECT ttft_bound_s - ext_s AS work_s, ext_s FROM requests").dicts()
    ext_s = sum(each["ext_s"] for each in told)
    sums = [_completions([told[n]["work_s"] for n in order]) for order in permutations(range(count))]
    assert row["together_s"] * count == pytest.approx(min(sums) + ext_s)


def _completions(work_s: list[float]) -> float:
    """Return the sum of completions when each job, in this order, takes the worker that is free first.

    Some order of this kind is the best: a schedule's jobs by their starts are one that ends no later.
    """
    free = [0.0] * len(WORKERS)
    done = []
    for each in work_s:
        first = free.index(min(free))
        free[first] += each
        done.append(free[first])
    return sum(done)
