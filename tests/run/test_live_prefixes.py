"""The whole live stack with a manager that copies and reclaims all the time: every output as uncached."""

from collections import Counter
from pathlib import Path

import pytest

from tests.run.test_live_moves import Operator, check_outputs, check_served
from tests.support.live_stack import Served, live_stack
from vertumnus.commandline.hydra_configs import composed, hydra_configs, plain_tree
from vertumnus.config import RunConfig, to_run_config
from vertumnus.domain.facts import ReplicasDeleted, StepStarted, TransferFailed, TransferFinished
from vertumnus.domain.orders import CloseTransition, Transfer

pytestmark = pytest.mark.live

EAGER = (
    "cache=vertumnus",
    "cache.scan_interval_s=0.05",
    "cache.manager.theta_inter_s=0.0005",
    "cache.manager.theta_intra=0.2",
    "cache.manager.theta_reclaim=0.15",
    "cache.manager.grace_scans=0",
    "cache.manager.blocks_per_copy=4",
)
"""Copies whatever was reused once, and lets go of it a few scans later."""


def a_config(requests: int, *words: str) -> RunConfig:
    """The first requests of the tool-agent trace on four nano ranks that may form every degree."""
    given = (
        "+experiment=tool_agent",
        "model=nano",
        f"workload.requests={requests}",
        "cluster.degrees=[1,2,4]",
        "cluster.blocks_per_rank=200",
        "seed=7",
        *EAGER,
        *words,
    )
    with hydra_configs():
        return to_run_config(plain_tree(composed(given)))


def operations(served: Served) -> Counter[str]:
    """Count copies by reason and end, and deleted blocks."""
    counts = Counter(f"{order.reason} ordered" for order in served.bodies(Transfer))
    reasons = {order.transfer_id: order.reason for order in served.bodies(Transfer)}
    counts.update(reasons[fact.transfer_id] for fact in served.bodies(TransferFinished))
    counts["failed"] = len(served.bodies(TransferFailed))
    counts["deleted"] = sum(len(keys) for fact in served.bodies(ReplicasDeleted) for _, keys in fact.evicted)
    return counts


def serve_against_uncached(
    tmp_path: Path, requests: int, wishes: int, seed: int, *words: str
) -> tuple[Served, Counter[str]]:
    """Serve without any reuse, then with copies, reclaims and moves; compare every output."""
    with live_stack(a_config(requests, *words), tmp_path) as stack:
        uncached = stack.serve("uncached", uncached=True)
        managed = stack.serve("managed", Operator(seed, wishes).after_event if wishes else None)
        check_outputs(stack, managed, uncached)
    check_served(uncached)
    check_served(managed)
    assert not any(item.cached_tokens for fact in uncached.bodies(StepStarted) for item in fact.items)
    assert managed.witness.hits
    counts = operations(managed)
    print(dict(counts))
    return managed, counts


@pytest.mark.parametrize(
    ("transport", "policy"),
    [("shared", "vertumnus"), pytest.param("pairwise", "paper", marks=pytest.mark.long)],
)
def test_outputs_are_those_of_the_uncached_run(tmp_path: Path, transport: str, policy: str) -> None:
    """Pulls, replicas, reclaims, splits and merges among degrees 1, 2 and 4 change no token."""
    words = (f"backend.transport={transport}", f"policy={policy}")
    served, counts = serve_against_uncached(tmp_path, 80, 8, 1, *words)
    assert {order.kind for order in served.bodies(CloseTransition)} == {"split", "merge"}
    # which of them, and how many deletions, is a matter of timing
    assert sum(counts[reason] for reason in ("inter", "intra", "pull", "reconcile")) > 0


@pytest.mark.long
@pytest.mark.parametrize("policy", ["paper", "vertumnus"])
@pytest.mark.parametrize("seed", range(5))
def test_outputs_are_those_of_the_uncached_run_for_many_seeds(tmp_path: Path, seed: int, policy: str) -> None:
    """Longer runs, other moves."""
    serve_against_uncached(tmp_path, 300, 60, 100 + seed, f"policy={policy}", f"seed={seed}")
