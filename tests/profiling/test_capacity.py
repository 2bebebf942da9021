"""kappa: the search for the break, and one worker's break worked out by hand."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from tests.support.builders import a_cluster, a_profile, a_record
from vertumnus.config import RunConfig
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.units import SECOND
from vertumnus.policy.config import PaperPolicy
from vertumnus.records.config import Measurement
from vertumnus.sim.config import SimConfig
from vertumnus.trace.config import ArrivalConfig, SloBucket, SloConfig
from vertumnus_profiling.capacity import POISSON, SimulatedPool, Trial, find_capacity, judge
from vertumnus_profiling.kappa import Kappa, pool_sizes, pools_of, simulated_kappas
from vertumnus_profiling.options import read_options
from vertumnus_profiling.show import kappa_line

REQUESTS, TOKENS, TARGET_S = 200, 600, 2.0
EVENLY = ArrivalConfig(process="trace", rate=1.0)


def broken_above(limit: float, tried: list[float]) -> Callable[[float], Trial]:
    """A worker that serves every rate up to *limit*, each request half a second of work."""

    def trial(rate: float) -> Trial:
        tried.append(rate)
        return Trial(rate / 2, 0.95 if rate <= limit else 0.85, 0.1)

    return trial


@pytest.mark.parametrize("start", [1.0, 7.0, 100.0])
def test_the_break_is_closed_in_on_from_either_side(start: float) -> None:
    """Whether the first rate holds or not, the found one holds and is within 2 % of the limit."""
    tried: list[float] = []
    found = find_capacity(broken_above(7.3, tried), 10.0, start, 1.5, 0.02, 0.9)
    assert found.rate <= 7.3 <= found.rate * 1.02
    assert (found.demand, found.attainment, found.trials) == (found.rate / 2, 0.95, len(tried))
    assert len(tried) == len(set(tried)) < 20


def test_a_pool_that_always_misses_or_never_does_has_no_kappa() -> None:
    """Below 2 % of a busy pool nothing is tried, and nothing above 8 times it; the line says which."""
    never = find_capacity(broken_above(0.0, []), 10.0, 2.5, 1.5, 0.02, 0.9)
    assert never.demand is None and never.rate >= 0.2
    assert "4 workers: no kappa: 85.0% within target even at a load of 2%" in kappa_line(
        Kappa(2, 4, never), 0.9
    )
    always = find_capacity(broken_above(1e9, []), 10.0, 2.5, 1.5, 0.02, 0.9)
    assert always.demand is None and always.rate <= 80.0
    assert "95.0% within target even at a load of 800%" in kappa_line(Kappa(2, 4, always), 0.9)
    assert Kappa(2, 4, never).value is None


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


def evenly(config: RunConfig, counts: dict[int, int]) -> SimulatedPool:
    """A pool whose requests come at even gaps instead of Poisson."""
    pool = SimulatedPool.of(config, counts)
    return pool._replace(config=structs.replace(pool.config, arrival=EVENLY))


@pytest.mark.parametrize("degree", [1, 2])
def test_a_growing_queue_does_not_hold(config: RunConfig, degree: int) -> None:
    """Evenly spaced requests never wait until a worker is busy all the time; beyond, the queue grows.

    Request n of N waits n(s - g) when one of s arrives every g < s, so that of 200 requests 90 % would
    still be within 2 s at 1.16 s of work a second at degree 1: no pool goes on like that.
    """
    profile = a_profile()
    service_s = profile.prefill_time().predict(degree, TOKENS, 0) / SECOND
    pool = evenly(config, {degree: 1})
    found = pool.capacity(profile, 0.9)
    assert found.demand is not None and 1 / 1.02 <= found.demand <= 1.0
    assert found.rate == pytest.approx(found.demand / service_s)
    assert pool.without_load(profile) == 1.0
    assert pool.busy(profile) == pytest.approx(1 / service_s)
    beyond = pool.trial(profile, 1.1 * pool.busy(profile))
    assert beyond.attainment is not None and beyond.attainment > 0.9 and not beyond.holds(0.9)


def test_demand_and_attainment_of_one_trial(config: RunConfig) -> None:
    """At 2 s of work per second the n-th of 0.0778 s waits n * 0.0389 s: 50 of 200 meet 2 s."""
    service_s = a_profile().prefill_time().predict(1, TOKENS, 0) / SECOND
    trial = evenly(config, {1: 1}).trial(a_profile(), 2 / service_s)
    assert service_s == pytest.approx(0.0778, abs=1e-4)
    assert trial.demand == pytest.approx(2.0)
    assert trial.attainment == 50 / REQUESTS
    assert trial.load == pytest.approx(2.0) and not trial.holds(0.1)


def test_a_rate_needs_a_span() -> None:
    """One request has none."""
    with pytest.raises(ConfigError, match="arrive at once"):
        judge([a_record()], Measurement(warmup_share=0.0), gpus=1)


def test_a_pool_is_all_there_is(config: RunConfig) -> None:
    """Three workers on six ranks, Poisson arrivals, and the config's own cache and targets."""
    pool = SimulatedPool.of(config, {2: 3}).config
    assert (pool.cluster.gpus, pool.cluster.initial_composition().counts()) == (6, {2: 3})
    assert (pool.arrival, pool.policy, pool.profile) == (POISSON, PaperPolicy(), None)
    assert (pool.slo, pool.cache) == (config.slo, config.cache)
    assert pool.cluster.blocks_per_rank == config.cluster.blocks_per_rank
    assert pool.cluster.decode.slots_per_rank > 100_000  # decode is never the limit


def test_a_worker_too_small_for_the_stream_is_told_before_anything_runs(config: RunConfig) -> None:
    """The longest prompt must fit one worker of the degree."""
    small = structs.replace(config, cluster=structs.replace(config.cluster, blocks_per_rank=1))
    with pytest.raises(ConfigError, match=r"cluster\.blocks_per_rank: found 1"):
        SimulatedPool.of(small, {1: 4})
    assert len(SimulatedPool.of(small, {2: 4}).stream.rows) == REQUESTS


@pytest.mark.parametrize(
    ("gpus", "degrees", "sizes"),
    [
        (4, (1, 2), (1, 2, 4)),
        (40, (4, 8), (1, 5, 10)),
        (40, (1, 2, 4, 8), (1, 5, 40)),
        (8, (2,), (1, 4)),
        (8, (8,), (1,)),
    ],
)
def test_pools_are_as_small_and_as_large_as_the_budget_allows(gpus, degrees, sizes) -> None:
    """A lone worker, all workers of the largest degree, and all of the smallest."""
    assert pool_sizes(structs.replace(a_cluster(), gpus=gpus, degrees=degrees)) == sizes


def test_all_degrees_have_one_target(config: RunConfig) -> None:
    """90 % of what the pool that attains least attains idle; kappa of each pool, with its origin."""
    told: list[int] = []
    sooner = structs.replace(config, slo=SloConfig(buckets=(SloBucket(ttft_s=0.2),)))
    kappas = simulated_kappas(pools_of(sooner), a_profile(), told.append)
    assert (kappas.without_load, kappas.target) == (1.0, 0.9)
    table = kappas.table()
    assert {degree: set(row) for degree, row in table.items()} == {1: {1, 2, 4}, 2: {1, 2, 4}}
    assert all(row[1] < row[4] for row in table.values())  # a larger pool uses more of each worker
    assert told == [1, 2, 3, 4, 5, 6]
    provenance = kappas.provenance(config, "simulated")
    assert "pools of 1, 2, 4 workers of one degree; target 90.0% of the tokens" in provenance
