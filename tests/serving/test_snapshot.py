"""A frozen pool: its copies have the same future as the original, and leave it alone."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.serving.test_transitions import MovingRig, shapes, wishes
from tests.support.builders import a_cluster, a_control_plane, shared_prefix_requests
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.codec import INPUT, Record
from vertumnus.domain.facts import RequestArrived
from vertumnus.policy.config import (
    HomoPolicy,
    LeastLoadedPolicy,
    PaperPolicy,
    RoundRobinPolicy,
    StaticPolicy,
)
from vertumnus.serving.loop import Loop
from vertumnus.serving.silent import SilentEngine
from vertumnus.serving.snapshot import restore, take_snapshot
from vertumnus.workers.fleet import Fleet


@settings(max_examples=40)
@given(shapes, wishes, st.integers(0, 10_000), st.integers(1, 400))
def test_a_copy_has_the_same_future(lengths, actions, seed, place) -> None:
    """Told the inputs that the original was told next, a copy says the same facts and orders."""
    rig = MovingRig(seed, actions, step_error=0.02, cancel=0.1)
    taken = []

    def look() -> None:
        if len(rig.records) >= place and not taken:
            taken.append((len(rig.records), take_snapshot(rig.fleet, rig.control, rig.engine.now())))

    rig.loop.serve(requests(lengths), look)
    for at, snapshot in taken:
        assert _told(restore(snapshot), rig.records[at:]) == rig.records[at:]
        assert _told(restore(snapshot), rig.records[at:]) == rig.records[at:], "the copies share state"


def test_a_snapshot_changes_nothing() -> None:
    """A run with a snapshot after every event has the log of one without."""
    plain, frozen = (MovingRig(5, [(20_000_000, "split", CpGroup(0, 4))]) for _ in range(2))
    plain.loop.serve(requests([(0, 4, 3)] * 12))
    frozen.loop.serve(requests([(0, 4, 3)] * 12), lambda: take_snapshot(frozen.fleet, frozen.control, 0))
    assert plain.records == frozen.records


@pytest.mark.parametrize(
    "policy",
    [PaperPolicy(), HomoPolicy(), StaticPolicy(length_threshold=50), LeastLoadedPolicy(), RoundRobinPolicy()],
    ids=lambda policy: type(policy).__name__,
)
def test_every_policy_can_be_frozen_and_leaves_its_observer(policy) -> None:
    """Whatever places requests can be copied; the one who watches placements is not called by the copy."""
    seen: list[object] = []
    control = a_control_plane(policy=policy, observe=seen.append)
    copy = restore(take_snapshot(Fleet(a_cluster(), 16), control, 0)).control
    for request in requests([(0, 2, 1)]):
        copy.handle(RequestArrived(request.arrival_ns, request))
    assert not seen


def _told(pool, inputs: list[Record]) -> list[Record]:
    records: list[Record] = []
    loop = Loop(SilentEngine(), *pool, lambda source, body: records.append(Record(source, body)))
    for source, body in inputs:
        if source == INPUT:
            loop.take(body)
    return records


def requests(lengths):
    """Requests of these shapes, one every 8 ms."""
    return shared_prefix_requests(lengths, gap_ns=8_000_000)


def test_recent_arrivals_stay_behind() -> None:
    """They are the original's; a copy is told what it is to meet."""
    rig = MovingRig(1, [])
    rig.run([(0, 4, 3)] * 6)
    assert len(restore(take_snapshot(rig.fleet, rig.control, 0)).control.requests.recent) == 0
    assert len(rig.control.requests.recent) == 6
