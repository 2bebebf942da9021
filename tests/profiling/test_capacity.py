"""kappa: the search for the break, and one worker's break worked out by hand."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from tests.support.builders import a_profile
from vertumnus.config import RunConfig
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.units import SECOND
from vertumnus.policy.config import PaperPolicy
from vertumnus.records.config import Measurement
from vertumnus.sim.config import SimConfig
from vertumnus.trace.config import ArrivalConfig
from vertumnus_profiling.capacity import (
    POISSON,
    Trial,
    find_capacity,
    judge,
    lone_worker,
    simulated_capacity,
    simulated_records,
    simulated_stream,
)
from vertumnus_profiling.options import read_options
from vertumnus_profiling.show import capacity_line

REQUESTS, TOKENS, TARGET_S = 200, 600, 2.0
EVENLY = ArrivalConfig(process="trace", rate=1.0)


def broken_above(limit: float, tried: list[float]) -> Callable[[float], Trial]:
    """A worker that serves every rate up to *limit*, each request half a second of work."""

    def trial(rate: float) -> Trial:
        tried.append(rate)
        return Trial(rate / 2, 0.95 if rate <= limit else 0.85)

    return trial


@pytest.mark.parametrize("start", [1.0, 7.0, 100.0])
def test_the_break_is_closed_in_on_from_either_side(start: float) -> None:
    """Whether the first rate holds or not, the found one holds and is within 2 % of the limit."""
    tried: list[float] = []
    found = find_capacity(broken_above(7.3, tried), 10.0, start, 1.5, 0.02)
    assert found.rate <= 7.3 <= found.rate * 1.02
    assert (found.kappa, found.attainment, found.trials) == (found.rate / 2, 0.95, len(tried))
    assert len(tried) == len(set(tried)) < 20


def test_a_worker_that_always_misses_or_never_does_has_no_kappa() -> None:
    """Below 2 % of a busy worker nothing is tried, and nothing above 8 times it; the line says which."""
    never = find_capacity(broken_above(0.0, []), 10.0, 2.5, 1.5, 0.02)
    assert never.kappa is None and never.rate >= 0.2
    assert capacity_line(never) == "has no kappa: 85.0% within target even at a load of 2%"
    always = find_capacity(broken_above(1e9, []), 10.0, 2.5, 1.5, 0.02)
    assert always.kappa is None and always.rate <= 80.0
    assert "95.0% within target even at a load of 800%" in capacity_line(always)


@pytest.fixture
def config(tmp_path: Path) -> RunConfig:
    """One class of requests without common prefixes, 2 s for the first token, exact simulated times."""
    trace = tmp_path / "even.jsonl"
    rows = (
        {
            "timestamp": 3_000 * n,
            "input_length": TOKENS,
            "output_length": 1,
            "hash_ids": [2 * n, 2 * n + 1],
        }
        for n in range(REQUESTS)
    )
    trace.write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["workload=conversation", f"workload.path={trace}", "scale=full", "records.warmup_share=0"]
    slo = f"slo.buckets=[{{below_tokens: null, ttft_s: {TARGET_S}}}]"
    made = read_options(["model=nano", *words, slo]).config
    return structs.replace(made, backend=SimConfig(noise_sigma=0.0), model=None)


@pytest.mark.parametrize("degree", [1, 2])
def test_kappa_of_an_even_stream_by_hand(config: RunConfig, degree: int) -> None:
    """Request n of N waits n(s - g) when one of s arrives every g < s; the target holds for n < 0.9 N.

    So at the break 0.9 N - 1 = 179 waits of s - g, one s, hand-off and first step are the target.
    """
    profile = a_profile()
    service_s = profile.prefill_time().predict(degree, TOKENS, 0) / SECOND
    after_s = profile.handoff(TOKENS) / SECOND + profile.decode_step_s
    gap_s = service_s - (TARGET_S - service_s - after_s) / (0.9 * REQUESTS - 1)
    worker = lone_worker(config, degree, EVENLY)
    found = simulated_capacity(worker, profile, simulated_stream(worker))
    assert found.kappa is not None
    assert found.kappa <= service_s / gap_s * (1 + 1e-6) and found.kappa * 1.02 >= service_s / gap_s
    assert found.rate == pytest.approx(found.kappa / service_s)


def test_demand_and_attainment_of_one_trial(config: RunConfig) -> None:
    """At 2 s of work per second the n-th of 0.0778 s waits n * 0.0389 s: 50 of 200 meet 2 s."""
    worker = lone_worker(config, 1, EVENLY)
    service_s = a_profile().prefill_time().predict(1, TOKENS, 0) / SECOND
    records = simulated_records(worker, a_profile(), simulated_stream(worker), 2 / service_s)
    trial = judge(records, Measurement(warmup_share=0.0))
    assert service_s == pytest.approx(0.0778, abs=1e-4)
    assert trial.demand == pytest.approx(2.0)
    assert trial.attainment == 50 / REQUESTS
    with pytest.raises(ConfigError, match="arrive at once"):
        judge(records[:1], Measurement(warmup_share=0.0))


def test_a_lone_worker_is_all_there_is(config: RunConfig) -> None:
    """One worker of the degree on as many ranks, Poisson arrivals, and the config's own cache and targets."""
    worker = lone_worker(config, 2)
    assert worker.cluster.initial_composition().counts() == {2: 1}
    assert (worker.arrival, worker.policy, worker.profile) == (POISSON, PaperPolicy(), None)
    assert (worker.slo, worker.cache) == (config.slo, config.cache)
    assert worker.cluster.blocks_per_rank == config.cluster.blocks_per_rank


def test_a_worker_too_small_for_the_stream_is_told_before_anything_runs(config: RunConfig) -> None:
    """The longest prompt must fit one worker of the degree."""
    small = structs.replace(config, cluster=structs.replace(config.cluster, blocks_per_rank=1))
    with pytest.raises(ConfigError, match=r"cluster\.blocks_per_rank: found 1"):
        simulated_stream(lone_worker(small, 1))
    assert len(simulated_stream(lone_worker(small, 2)).rows) == REQUESTS
