"""The coordinator's control records: what may follow what, and who still owes an acknowledgement."""

import pytest

from vertumnus.domain.cluster import CpGroup, Lattice
from vertumnus.domain.errors import ProtocolError
from vertumnus.domain.jobs import AdoptJob
from vertumnus.live.geometry import Geometry
from vertumnus.live.messages import Adopt

WHOLE, LEFT, RIGHT = CpGroup(0, 4), CpGroup(0, 2), CpGroup(2, 2)


def a_geometry() -> Geometry:
    """Four ranks as one worker under epoch 0; degree 1 is not supported."""
    return Geometry(Lattice(4, (2, 4), 4), [WHOLE], epoch=0)


def test_a_rank_acknowledges_what_it_was_told() -> None:
    """The record names job, worker and epoch; after the answer nobody is waited for."""
    geometry = a_geometry()
    assert geometry.begin(AdoptJob(7, 1, LEFT, 3)) == Adopt(7, LEFT, 3)
    assert len(geometry) == 1
    geometry.acknowledge(1, 7)
    assert len(geometry) == 0
    geometry.require_settled(1)


@pytest.mark.parametrize(
    ("job", "said"),
    [
        (AdoptJob(7, 1, RIGHT, 3), "rank 1 cannot adopt 2x2"),
        (AdoptJob(7, 1, CpGroup(1, 2), 3), "rank 1 cannot adopt 1x2"),
        (AdoptJob(7, 1, CpGroup(1, 1), 3), "rank 1 cannot adopt 1x1"),
        (AdoptJob(7, 1, LEFT, 0), "cannot adopt epoch 0 after epoch 0"),
    ],
)
def test_a_record_that_cannot_follow_is_refused(job: AdoptJob, said: str) -> None:
    """A group of other ranks, one outside the lattice, an epoch that is not newer: nothing changes."""
    geometry = a_geometry()
    with pytest.raises(ProtocolError, match=said):
        geometry.begin(job)
    assert len(geometry) == 0
    geometry.begin(AdoptJob(8, 1, LEFT, 1))


def test_nothing_follows_before_the_acknowledgement() -> None:
    """A second record, and with it a step, waits for the answer to the first one."""
    geometry = a_geometry()
    geometry.begin(AdoptJob(7, 1, LEFT, 3))
    with pytest.raises(ProtocolError, match="rank 1 has not yet acknowledged epoch 3"):
        geometry.begin(AdoptJob(8, 1, WHOLE, 4))
    with pytest.raises(ProtocolError, match="has not yet acknowledged"):
        geometry.require_settled(1)
    geometry.require_settled(0)


def test_an_answer_that_nobody_waits_for_is_an_error() -> None:
    """From another rank, to another job, or twice."""
    geometry = a_geometry()
    geometry.begin(AdoptJob(7, 1, LEFT, 3))
    for rank, job_id in ((0, 7), (1, 8)):
        with pytest.raises(ProtocolError, match="does not owe"):
            geometry.acknowledge(rank, job_id)
    geometry.acknowledge(1, 7)
    with pytest.raises(ProtocolError, match="does not owe"):
        geometry.acknowledge(1, 7)


def test_a_lost_rank_ends_its_job() -> None:
    """The job is told once; a rank that owed nothing takes none with it."""
    geometry = a_geometry()
    geometry.begin(AdoptJob(7, 1, LEFT, 3))
    assert geometry.lose(0) is None
    assert geometry.lose(1) == 7
    assert geometry.lose(1) is None
    assert len(geometry) == 0
