"""A paced run that operators act on: answers, log, replay."""

from pathlib import Path

import pytest

from tests.support.paced_runs import paced_run
from vertumnus.actions.client import NotConnected
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.facts import OperatorActed
from vertumnus.domain.orders import CloseTransition
from vertumnus.records.log import read_log
from vertumnus.run.audit import audit_run

PAIR = (CpGroup(32, 2), CpGroup(34, 2))


def test_two_operators_act_and_the_log_replays(tmp_path: Path) -> None:
    """Both want the same two workers: one gets them, the other is told; all of it is in the log, exactly."""
    with paced_run(tmp_path) as going:
        ann, bob = going.client("ann"), going.client("bob")
        wishes = [(who, who.act("merge", PAIR)) for who in (ann, bob)]
        answers = [who.wait(number, 30) for who, number in wishes]
        assert sorted(answer.accepted for answer in answers) == [False, True]
        assert "already in transition" in next(a.reason for a in answers if not a.accepted)
        tuned = ann.wait(ann.act("tune", setting="policy.beta", value=1.5), 30)
        assert tuned.reason == "policy.beta 1 -> 1.5"
        assert bob.wait(bob.act("undo"), 30).reason == "undo: no parameter was changed by bob"
        assert ann.wait(ann.act("undo"), 30).reason == "policy.beta 1.5 -> 1"
        assert bob.wait(bob.act("drain", (CpGroup(0, 4),)), 30).accepted
        assert ann.wait(ann.act("speed", value=1e6), 30).accepted
        outcome = going.finish()
    assert (outcome.status, outcome.verdict) == ("finished", "VALID")
    bodies = [record.body for record in read_log(going.run.log).records]
    acted = [body for body in bodies if isinstance(body, OperatorActed)]
    assert {(fact.who, fact.action) for fact in acted} >= {
        ("ann", "merge"),
        ("bob", "merge"),
        ("ann", "tune"),
        ("bob", "undo"),
        ("ann", "undo"),
        ("bob", "drain"),
        ("ann", "speed"),
    }
    assert [fact.action_id for fact in acted] == list(range(len(acted)))
    assert [body.outcome for body in bodies if isinstance(body, CloseTransition)] == ["committed"]
    assert audit_run(going.run).is_clean
    assert not going.run.actions.exists()
    with pytest.raises(NotConnected):
        going.client()


def test_the_log_is_on_the_disk_while_nothing_happens(tmp_path: Path) -> None:
    """A held run's log has the answer that an operator was given."""
    with paced_run(tmp_path) as going:
        client = going.client("ann")
        client.wait(client.act("tune", setting="policy.beta", value=3.0), 30)
        acted = [r.body for r in read_log(going.run.log).records if isinstance(r.body, OperatorActed)]
        assert [(fact.who, fact.value) for fact in acted] == [("ann", 3.0)]
