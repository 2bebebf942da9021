"""Drain, reopen, tune, undo by hand: what is answered, what changes, what does not."""

import pickle

import pytest

from tests.support.builders import a_control_plane, a_prefill_time, a_request
from tests.support.control_rig import LEFT, PAIR, RIGHT, Desk
from vertumnus.domain.cluster import CpGroup, Lattice
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.facts import (
    EpochAdopted,
    OperatorActed,
    RankLost,
    RequestsReturned,
    TimerFired,
    WorkerDrained,
    WorkerFormed,
)
from vertumnus.domain.orders import Answer, Drain, Prefill, Reject, Reopen
from vertumnus.policy.config import LeastLoadedPolicy, PaperPolicy, StaticPolicy
from vertumnus.policy.correction import CorrectionConfig
from vertumnus.policy.reconfig.capacity import Capacity
from vertumnus.policy.reconfig.config import ThresholdsController
from vertumnus.policy.reconfig.controller import Controller
from vertumnus.policy.tuning import Tuning


def test_a_drained_worker_gets_nothing_until_it_is_reopened() -> None:
    """Its queue is placed elsewhere, no request is routed there, and Reopen brings it back."""
    desk = Desk()
    first = desk.arrive(a_request(1))
    assert desk.wish("drain", first.worker) == [Answer(1, True, ""), Drain(first.worker)]
    (again,) = desk.tell(RequestsReturned(1, first.worker, (1,), "draining", is_failure=False))
    assert isinstance(again, Prefill) and again.worker != first.worker and again.attempt == 0
    assert desk.tell(WorkerDrained(2, first.worker)) == []
    placed = {desk.arrive(a_request(number)).worker for number in range(2, 30)}
    assert placed == {PAIR, LEFT, RIGHT} - {first.worker}
    excluded = dict(desk.decisions[-1].excluded)
    assert excluded == {first.worker: "drained by ann"}
    assert desk.wish("reopen", first.worker)[1:] == [Reopen(first.worker)]
    assert first.worker in {desk.arrive(a_request(number)).worker for number in range(30, 60)}


def test_illegal_drains_and_reopens_are_refused_with_the_reason() -> None:
    """Each names the worker and what is in the way; the last worker that serves cannot be drained."""
    desk = Desk()
    assert desk.refusal("reopen", PAIR) == "reopen 0x2: nobody drained it"
    assert "there is no such worker; there are: 0x2, 2x1, 3x1" in desk.refusal("drain", CpGroup(0, 4))
    assert desk.refusal("drain", LEFT, RIGHT) == "drain: found 2 workers, it takes 1"
    desk.wish("drain", PAIR, who="bob")
    assert desk.refusal("drain", PAIR) == "drain 0x2: bob drained it already"
    desk.wish("drain", LEFT)
    assert desk.refusal("drain", RIGHT) == "drain 3x1: it is the last worker that serves"
    assert desk.refusal("merge", LEFT, RIGHT) == "merge 2x1: it is drained by ann; reopen it first"
    assert desk.refusal("split", PAIR) == "split 0x2: it is drained by bob; reopen it first"
    desk.wish("reopen", LEFT)
    desk.wish("merge", LEFT, RIGHT)
    assert desk.refusal("drain", LEFT) == "drain 2x1: it is in transition; wait for its end"
    desk.tell(RankLost(5, 0, 0, "gone"))
    assert desk.refusal("reopen", PAIR) == "reopen 0x2: it is out of service: rank 0 is lost: gone"


def test_the_last_worker_for_the_longest_prompt_stays() -> None:
    """1,600 tokens are 100 blocks, at 64 a rank a degree of 2: the pair stays until there is another one."""
    desk = Desk(longest_prompt=1_600)
    why = (
        "no other worker could hold the longest prompt of this run, which needs degree 2 at 64 blocks a rank "
        "(cluster.blocks_per_rank)"
    )
    for action in ("split", "drain"):
        assert desk.refusal(action, PAIR) == f"{action} 0x2: {why}"
    desk.wish("merge", LEFT, RIGHT)
    assert desk.refusal("split", PAIR) == f"split 0x2: {why}", "the merge may fail"
    for worker in (LEFT, RIGHT):
        desk.tell(WorkerDrained(1, worker))
    merged = LEFT.parent
    for rank in merged.ranks:
        desk.tell(EpochAdopted(2, rank, 1, merged))
    desk.tell(WorkerFormed(2, merged, 1, ()))
    desk.wish("drain", PAIR)
    assert desk.refusal("split", merged) == f"split 2x2: {why}", "the pair takes no request"
    desk.wish("reopen", PAIR)
    assert desk.wish("split", merged)[1:] == [Drain(merged)]
    assert desk.refusal("split", PAIR) == f"split 0x2: {why}"
    assert desk.arrive(a_request(1, input_tokens=1_600)).worker == PAIR


def test_nobody_left_says_who_drained() -> None:
    """With one worker drained and the others lost, a request is rejected with both reasons."""
    desk = Desk()
    desk.wish("drain", PAIR)
    for rank in (2, 3):
        desk.tell(RankLost(1, rank, 0, "gone"))
    order = desk.arrive(a_request(9))
    assert isinstance(order, Reject) and "worker 0x2: drained by ann" in order.reason


def test_a_tune_counts_from_the_next_placement() -> None:
    """lambda 0 sends a prompt to the wide worker that lambda 50 keeps away from it; undo goes back."""
    desk = Desk(PaperPolicy(gpu_time_weight=50.0))
    long = {"input_tokens": 200}
    assert desk.serve(a_request(1, **long)).worker.degree == 1
    (answer,) = desk.wish("tune", setting="policy.gpu_time_weight", value=0)
    assert answer == Answer(1, True, "policy.gpu_time_weight 50 -> 0")
    assert desk.serve(a_request(2, **long)).worker == PAIR
    settings = desk.control.operators.settings()
    assert settings.items() >= {"policy.beta": 1.0, "policy.gpu_time_weight": 0.0}.items()
    assert desk.wish("undo") == [Answer(2, True, "policy.gpu_time_weight 0 -> 50")]
    assert desk.serve(a_request(3, **long)).worker.degree == 1
    assert desk.refusal("undo") == "undo: no parameter was changed by ann"


def test_undo_takes_back_what_one_changed_oneself() -> None:
    """Not another's change, and nothing that another has changed since; in the order of one's own changes."""
    desk = Desk(PaperPolicy())
    desk.wish("tune", setting="policy.beta", value=1.5, who="ann")
    desk.wish("tune", setting="policy.gpu_time_weight", value=2.0, who="bob")
    assert desk.refusal("undo", who="eve") == "undo: no parameter was changed by eve"
    desk.wish("tune", setting="policy.beta", value=2.5, who="bob")
    why = "undo: bob has changed it since, policy.beta 1.5 -> 2.5; tune sets it"
    assert desk.refusal("undo", who="ann") == why

    def undone(who: str) -> str:
        (answer,) = desk.wish("undo", who=who)
        assert isinstance(answer, Answer) and answer.accepted
        return answer.reason

    assert undone("bob") == "policy.beta 2.5 -> 1.5"
    assert undone("ann") == "policy.beta 1.5 -> 1"
    assert undone("bob").startswith("policy.gpu_time_weight 2 -> ")
    assert "no parameter was changed by bob" in desk.refusal("undo", who="bob")


def test_an_undo_that_cannot_be_stays_to_be_undone() -> None:
    """upper may not go below lower: ann's change waits until bob has taken his back."""

    class Held:
        config = ThresholdsController(upper=0.5, lower=0.1)

        def retune(self, config: ThresholdsController) -> None:
            self.config = config

    held, tuning = Held(), Tuning()
    tuning.add("controller", held)
    tuning.change("controller.upper", 0.9, "ann")
    tuning.change("controller.lower", 0.7, "bob")
    with pytest.raises(ConfigError, match=r"found lower 0\.7 and upper 0\.5"):
        tuning.undo("ann")
    assert held.config.upper == 0.9
    assert str(tuning.undo("bob")) == "controller.lower 0.7 -> 0.1"
    assert str(tuning.undo("ann")) == "controller.upper 0.9 -> 0.5"


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("policy.beta", 0.5, "tune policy.beta: beta must be at least 1, got 0.5"),
        ("policy.beta", "much", "tune policy.beta: found 'much', must be a number"),
        ("policy.beta", None, "tune policy.beta: found null, must be a number"),
        ("policy.bta", 2.0, "allowed: policy.beta, policy.gpu_time_weight"),
        ("policy.queue_estimate", "remaining", "tune policy.queue_estimate: cannot be changed live"),
        ("controller.upper", 1.0, "cannot be changed live"),
        ("", None, "tune nothing: cannot be changed live"),
    ],
)
def test_what_may_not_be_tuned_changes_nothing(setting: str, value: object, said: str) -> None:
    """Wrong names, types and bounds are refused as in a config, and settings and undo stay as they were."""
    desk = Desk()
    before = desk.control.operators.settings()
    assert said in desk.refusal("tune", setting=setting, value=value)
    assert desk.control.operators.settings() == before
    assert "no parameter" in desk.refusal("undo")


def test_what_can_be_tuned_depends_on_the_policy() -> None:
    """A threshold where there is one; a policy without parameters leaves those of the correction."""
    desk = Desk(StaticPolicy(length_threshold=100))
    assert desk.serve(a_request(1, input_tokens=99)).worker.degree == 1
    desk.wish("tune", setting="policy.length_threshold", value=50)
    assert desk.serve(a_request(2, input_tokens=99)).worker == PAIR
    refusal = Desk(LeastLoadedPolicy()).refusal("tune", setting="policy.beta", value=1.5)
    assert "none under this policy and controller" in refusal


@pytest.mark.parametrize(("value", "enabled"), [("false", False), (0, False), ("true", True), (1, True)])
def test_the_correction_can_be_switched(value: object, enabled: bool) -> None:
    """Off and on again, by number or word; a pool without a correction has nothing to switch."""
    control = a_control_plane(correction=CorrectionConfig())
    wish = OperatorActed(1, 1, "tester", "tune", (), "correction.enabled", value)
    (answer,) = control.handle(wish)
    assert answer.accepted, answer
    assert control.operators.settings()["correction.enabled"] is enabled
    (answer,) = control.handle(OperatorActed(2, 2, "tester", "tune", (), "correction.enabled", 2))
    assert answer.reason == "tune correction.enabled: found 2, must be true or false"
    assert "correction.enabled" not in a_control_plane().operators.settings()


def test_tuned_thresholds_are_those_of_the_next_window() -> None:
    """`upper` above the demand ends a call for a split, and H is that of the next timer."""
    kappa = Capacity({1: 1.0, 2: 1.0, 4: 1.0})
    controller = Controller(
        ThresholdsController(window_s=1.0, upper=0.5, lower=0.0),
        kappa,
        a_prefill_time(),
        Lattice(4, (1, 2), 4),
        100,
    )
    tuning = Tuning()
    tuning.add("controller", controller)
    assert tuning.change("controller.upper", 0.9, "ann").after == 0.9
    assert controller.config.upper == controller._trigger._thresholds.upper == 0.9
    tuning.change("controller.window_s", 2, "ann")
    assert controller.window_ns == 2_000_000_000
    tuning.change("controller.cooldown_windows", 0, "ann")
    assert [tuning.undo("ann").setting for _ in range(3)] == [
        "controller.cooldown_windows",
        "controller.window_s",
        "controller.upper",
    ]


def test_a_speed_is_noted_and_changes_no_decision() -> None:
    """The pace is the engine's: the control plane answers, so that it stands in the log."""
    assert Desk().wish("speed", value=20.0) == [Answer(1, True, "20x")]


def test_a_control_plane_with_wishes_can_be_copied() -> None:
    """A copy has the same holds and parameters, and goes its own way from there."""
    desk = Desk()
    desk.wish("drain", PAIR)
    desk.wish("tune", setting="policy.beta", value=2.0)
    copy = pickle.loads(pickle.dumps(desk.control))
    (undone,) = copy.handle(OperatorActed(1, 7, "ann", "undo"))
    assert undone.reason == "policy.beta 2 -> 1"
    assert desk.control.operators.settings()["policy.beta"] == 2.0
    assert copy.handle(OperatorActed(1, 8, "bob", "reopen", (PAIR,)))[1:] == [Reopen(PAIR)]
    assert copy.handle(TimerFired(1, "scan", 1)) and desk.control.pool.workers[PAIR].held_by == "ann"
