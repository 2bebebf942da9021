"""A hot prefix is replicated on live ranks: the next request at the other worker is a hit, as predicted."""

from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from msgspec.structs import replace

from tests.run.test_live_moves import check_served
from tests.support.builders import a_profile
from tests.support.live_stack import Served, Turn, live_stack
from vertumnus.commandline.hydra_configs import composed, hydra_configs, plain_tree
from vertumnus.config import RunConfig, to_run_config
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.codec import Body
from vertumnus.domain.facts import RequestEnded, StepFinished, StepStarted, TransferFinished
from vertumnus.domain.orders import Prefill, Transfer
from vertumnus.domain.request import Request
from vertumnus.domain.units import RequestId
from vertumnus.serving.follow_ups import FollowUps
from vertumnus.trace.prompts import Prompt

pytestmark = pytest.mark.live

PREFIX_BLOCKS = 32
OWN_TOKENS = 8
"""Of each prompt, behind the shared prefix."""


SECOND_WORKER = CpGroup(1, 1)
PROFILE = replace(a_profile(), prefill=replace(a_profile().prefill, divided_per_uncached_s=1e-3))
"""Computing the prefix is predicted to take a second, so nobody does it where a queue of hits is shorter."""


def a_config() -> RunConfig:
    """Two workers, a manager that replicates what was reused once, and nothing else that copies."""
    words = (
        "+experiment=tool_agent",
        "model=nano",
        "policy=paper",
        "correction=off",
        "cluster=two_ranks",
        "cache=paper",
        "cache.scan_interval_s=0.02",
        "cache.manager.theta_inter_s=0.0005",
        "cache.manager.theta_intra=0.5",
        "cache.manager.theta_reclaim=0.0",
        "workload.requests=40",
    )
    with hydra_configs():
        return to_run_config(plain_tree(composed(words)))


def prompts(block_tokens: int, vocab_size: int, count: int) -> list[Prompt]:
    """One prefix, and a few tokens of each prompt's own."""
    draw = np.random.default_rng(3)
    prefix = draw.integers(0, vocab_size, PREFIX_BLOCKS * block_tokens)
    keys = tuple(range(1, PREFIX_BLOCKS + 1))
    tokens = [np.concatenate([prefix, draw.integers(0, vocab_size, OWN_TOKENS)]) for _ in range(count)]
    return [Prompt(Request(number, 0, len(each), 2, keys), each) for number, each in enumerate(tokens)]


class InPairs(FollowUps):
    """The first by itself, then two at once each time that nobody is left, until enough was seen.

    Whatever the machine takes, nobody arrives while the prefix is computed, and each pair finds both workers
    idle: its second one goes to the second worker as soon as the prefix is there.
    """

    def __init__(self, prompts: Sequence[Prompt], enough: int) -> None:
        """Go on until *enough* of *prompts* were placed at the second worker, and no copy is under way."""
        super().__init__({})
        self._others = deque(prompt.request for prompt in prompts[1:])
        self._open, self._lacking = 1, enough
        self._copies: set[int] = set()
        self.left = 1

    def note(self, body: Body) -> None:
        """Count placements at the second worker, and the copies that have not ended."""
        if isinstance(body, Prefill):
            self._lacking -= body.worker == SECOND_WORKER
        elif isinstance(body, Transfer):
            self._copies.add(body.transfer_id)
        elif isinstance(body, TransferFinished):
            self._copies.discard(body.transfer_id)

    def turns(self) -> Iterator[Turn]:
        """Yield the first."""
        yield Turn(0)

    def released_by(self, fact: RequestEnded) -> Iterator[Request]:
        """Yield the next two when the last one has ended, and none when enough was seen."""
        self._open -= 1
        if self._open:
            return
        if len(self._others) < 2 or (self._lacking <= 0 and not self._copies):
            self.left = 0
            return
        self._open = 2
        for _ in range(2):
            yield replace(self._others.popleft(), arrival_ns=fact.at)

    def note_arrival(self, request_id: RequestId) -> bool:
        """All but the first follow."""
        return request_id > 0


def serve(tmp_path: Path, enough: int) -> Served:
    """Serve requests of one prefix while it is replicated, until *enough* went to the second worker."""
    config = a_config()
    assert config.model is not None
    with live_stack(config, tmp_path, PROFILE) as stack:
        # many more than it takes, for a machine on which a copy takes long
        stack.prompts = prompts(stack.engine.plan.block_tokens, config.model.vocab_size, 20 * enough + 2_000)
        pairs = InPairs(stack.prompts, enough)
        served = stack.serve("replicated", script=pairs, follow_ups=pairs)
    check_served(served)
    return served


def starts_at(served: Served, worker: CpGroup) -> list[StepStarted]:
    """The steps of *worker*, in order."""
    return [fact for fact in served.bodies(StepStarted) if fact.worker == worker]


def check_first_hit(served: Served) -> None:
    """The second worker got the prefix as a replica; its first step reuses what is there, as predicted."""
    copies = served.bodies(Transfer)
    assert {(order.reason, order.destination) for order in copies} == {("intra", SECOND_WORKER)}
    assert copies[-1].transfer_id in {fact.transfer_id for fact in served.bodies(TransferFinished)}
    first = starts_at(served, SECOND_WORKER)[0].items[0]
    placed = [order for order in served.bodies(Prefill) if order.request_id == first.request_id][-1]
    predicted = placed.expected_cached
    assert placed.worker == SECOND_WORKER and first.cached_tokens >= predicted > 0
    uncached = PREFIX_BLOCKS * served.block_tokens + OWN_TOKENS - predicted
    assert placed.service_ns == PROFILE.prefill_time().predict(1, uncached, predicted)


def test_a_replica_turns_the_next_request_there_into_a_hit(tmp_path: Path) -> None:
    """The second worker never computes what was copied: its first step reuses it, as predicted."""
    served = serve(tmp_path, 3)
    check_first_hit(served)


@pytest.mark.long
def test_a_replica_serves_as_fast_as_the_first_copy(tmp_path: Path) -> None:
    """Hits at the second worker take what they take at the first, a fraction of computing the prefix."""
    served = serve(tmp_path, 180)
    check_first_hit(served)
    took = {fact.step_id: fact.compute_ns for fact in served.bodies(StepFinished)}
    steps = served.bodies(StepStarted)
    cold = took[steps[0].step_id]
    there = median(took[fact.step_id] for fact in starts_at(served, SECOND_WORKER))
    here = median(took[fact.step_id] for fact in steps[1:] if fact.worker != SECOND_WORKER)
    print(f"computed {cold / 1e6:.1f} ms, hit at the first {here / 1e6:.2f} ms, second {there / 1e6:.2f} ms")
    assert there < 2.0 * here and 3.0 * there < cold
