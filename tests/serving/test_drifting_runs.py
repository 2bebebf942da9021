"""Whole simulated runs whose prefills drift from the profile, or do not."""

from statistics import mean, stdev

import pytest

from tests.support.builders import BLOCK_TOKENS, a_cluster, a_control_plane, a_profile, shared_prefix_requests
from vertumnus.domain.facts import FirstTokenEmitted, RequestArrived, StepFinished, StepStarted
from vertumnus.domain.jobs import StepJob
from vertumnus.domain.orders import NoteDrift, Prefill
from vertumnus.policy.config import PaperPolicy, PolicyConfig, VertumnusPolicy
from vertumnus.policy.correction import CorrectionConfig
from vertumnus.policy.placement import Decision, Observer
from vertumnus.policy.placer import Placer
from vertumnus.serving.loop import Loop
from vertumnus.sim.durations import Durations
from vertumnus.sim.engine import SimEngine
from vertumnus.workers.fleet import Fleet

ON, OFF = CorrectionConfig(), CorrectionConfig(enabled=False)


class Drifting(Durations):
    """Durations of the profile that grow by a factor after so many steps."""

    def __init__(self, seed: int, factor: float, after: int) -> None:
        super().__init__(a_profile(), seed, 0.06, block_tokens=BLOCK_TOKENS)
        self._factor, self._left = factor, after

    def step(self, job: StepJob) -> int:
        self._left -= 1
        took = super().step(job)
        return took if self._left >= 0 else round(took * self._factor)


class Run:
    """A pool of two degrees under a steady load, with what was predicted and what came of it."""

    def __init__(
        self,
        seed: int,
        correction: CorrectionConfig,
        policy: PolicyConfig | None = None,
        factor: float = 1.0,
        after: int = 0,
        requests: int = 900,
        observe=None,
    ) -> None:
        cluster = a_cluster({2: 2, 1: 4}, blocks_per_rank=400)
        self.control = a_control_plane(cluster, policy or VertumnusPolicy(), correction=correction)
        self.control.watch(None if observe is None else Observer(lambda decision: observe(self, decision)))
        self.predicted: dict[int, Prefill] = {}
        self.errors: dict[int, list[float]] = {1: [], 2: []}
        self.alarms: list[NoteDrift] = []
        self.requests: dict[int, RequestArrived] = {}
        self.ttft: list[int] = []
        self._in_step: dict[int, int] = {}
        engine = SimEngine(Drifting(seed, factor, after))
        lengths = [
            ((number * 7 + seed) % 40, (number * 13 + seed * 5) % 60, 1 + number % 16)
            for number in range(requests)
        ]
        Loop(engine, Fleet(cluster, BLOCK_TOKENS), self.control, self.record).serve(
            shared_prefix_requests(lengths, gap_ns=14_000_000)
        )

    def record(self, source: int, body: object) -> None:
        if isinstance(body, RequestArrived):
            self.requests[body.request.request_id] = body
        elif isinstance(body, Prefill):
            self.predicted[body.request_id] = body
        elif isinstance(body, StepStarted):
            self._in_step[body.step_id] = body.items[0].request_id
        elif isinstance(body, StepFinished):
            order = self.predicted[self._in_step.pop(body.step_id)]
            self.errors[order.worker.degree].append(order.service_ns / body.compute_ns - 1)
        elif isinstance(body, NoteDrift):
            self.alarms.append(body)
        elif isinstance(body, FirstTokenEmitted):
            self.ttft.append(body.at - self.requests[body.request_id].at)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("policy", [VertumnusPolicy(), PaperPolicy()])
def test_predictions_come_back_after_a_drift(seed: int, policy: PolicyConfig) -> None:
    """From step 300 on prefills take 1.3 times as long: 50 steps later each is predicted within 5 %."""
    run, blind = (Run(seed, each, policy, factor=1.3, after=300, requests=600) for each in (ON, OFF))
    assert {(1, True), (2, True)} <= {(note.degree, note.is_raised) for note in run.alarms}
    for errors in run.errors.values():
        assert len(errors) > 170
        assert abs(mean(errors[-50:])) < 0.05
    assert all(mean(errors[-50:]) < -0.18 for errors in blind.errors.values())
    assert blind.alarms == []


def test_without_drift_next_to_no_decision_differs() -> None:
    """Of the choices of noisy runs at most 1 % are others than the profile alone would have made there."""
    differ = total = 0

    def compare(run: Run, decision: Decision) -> None:
        nonlocal differ, total
        control, request = run.control, run.requests[decision.request_id].request
        profile_alone = Placer(
            VertumnusPolicy(), control.pool, control.ledger, a_profile((1, 2)).prefill_time(), BLOCK_TOKENS,
            control.prefixes.puller, None,
        )  # fmt: skip
        held = control.index.match(request.block_keys or ()).held
        other = profile_alone.decide(request, 0, profile_alone.eligible(request, held), decision.at)
        total += 1
        differ += decision.offers[decision.chosen].worker != other.offers[other.chosen].worker

    for seed in range(2):
        Run(seed, ON, observe=compare, requests=500)
    assert total == 1_000
    assert differ <= 0.01 * total


def test_without_drift_the_ttft_does_not_change() -> None:
    """Over paired seeds the mean difference in TTFT is within its own 95 % interval around 0."""
    pairs = [[mean(Run(seed, each, requests=250).ttft) for each in (ON, OFF)] for seed in range(6)]
    differences = [on - off for on, off in pairs]
    half = 2.57 * stdev(differences) / len(differences) ** 0.5  # t of 5 degrees of freedom
    assert abs(mean(differences)) <= half
    assert half < 0.05 * mean(off for _, off in pairs)
