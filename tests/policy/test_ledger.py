"""The ledger: what is reserved where, settled to exactly 0 (sec. 5.2-5.3, case 14)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import InvariantError, ProtocolError
from vertumnus.policy.ledger import Ledger

WORKERS = (CpGroup(0, 2), CpGroup(2, 1))
PAIR, SINGLE = WORKERS


def test_outstanding_and_remaining_by_hand() -> None:
    """100 + 50 reserved, the first runs since 30: at 70 all 150 are outstanding and 110 remain."""
    ledger = Ledger(WORKERS)
    ledger.reserve(0, PAIR, 100)
    ledger.reserve(1, PAIR, 50)
    ledger.start(PAIR, 100, 30)
    assert (list(ledger.outstanding()), list(ledger.remaining(70))) == ([150, 0], [110, 0])


def test_an_overdue_step_takes_off_no_more_than_itself() -> None:
    """A step that runs longer than predicted leaves the queue behind it in the estimate."""
    ledger = Ledger(WORKERS)
    ledger.reserve(0, PAIR, 100)
    ledger.reserve(1, PAIR, 50)
    ledger.start(PAIR, 100, 30)
    assert list(ledger.remaining(1_000)) == [50, 0]


def test_after_its_step_a_worker_has_used_nothing() -> None:
    """Between two steps nothing is taken off, however long ago the last one started."""
    ledger = Ledger(WORKERS)
    ledger.reserve(0, PAIR, 100)
    ledger.reserve(1, PAIR, 50)
    ledger.start(PAIR, 100, 30)
    ledger.stop(PAIR)
    ledger.release(0)
    assert list(ledger.remaining(500)) == list(ledger.outstanding()) == [50, 0]


def test_a_reservation_is_repriced_where_it_lies() -> None:
    """What the step will really take replaces the estimate, up or down."""
    ledger = Ledger(WORKERS)
    ledger.reserve(0, SINGLE, 100)
    ledger.begin(0, 70)
    assert (list(ledger.outstanding()), ledger.total_ns) == ([0, 70], 70)
    ledger.begin(0, 130)
    assert ledger.total_ns == 130
    ledger.release(0)
    assert ledger.total_ns == 0


def test_a_request_is_reserved_once() -> None:
    """A second reservation is refused and changes nothing; after the release it may come again."""
    ledger = Ledger(WORKERS)
    ledger.reserve(0, PAIR, 100)
    with pytest.raises(ProtocolError, match="request 0 is reserved already"):
        ledger.reserve(0, SINGLE, 7)
    assert list(ledger.outstanding()) == [100, 0]
    ledger.release(0)
    ledger.reserve(0, SINGLE, 7)
    assert ledger.total_ns == 7


def test_a_second_release_changes_nothing() -> None:
    """Finish, failure and cancel may all release: only the first one counts."""
    ledger = Ledger(WORKERS)
    ledger.reserve(0, PAIR, 100)
    ledger.reserve(1, PAIR, 5)
    ledger.release(0)
    ledger.release(0)
    ledger.release(99)
    assert ledger.total_ns == 5


def test_the_audit_notices_a_wrong_total() -> None:
    """A total that is not the sum of its entries is our bug."""
    ledger = Ledger(WORKERS)
    ledger.reserve(0, PAIR, 100)
    ledger.check()
    ledger.outstanding()[0] += 1
    with pytest.raises(InvariantError, match=r"reserved \[101, 0\] ns by worker, the entries say \[100, 0\]"):
        ledger.check()


operations = st.lists(
    st.tuples(
        st.sampled_from(["reserve", "begin", "release"]),
        st.integers(0, 5),
        st.sampled_from(WORKERS),
        st.integers(0, 2**62),
    ),
    max_size=40,
)


@given(operations)
def test_totals_are_the_sums_of_the_reservations(steps) -> None:
    """Whatever comes in which order, each worker's total is the sum of its entries and ends at 0."""
    ledger = Ledger(WORKERS)
    entries: dict[int, tuple[CpGroup, int]] = {}
    for action, request_id, worker, service_ns in steps:
        if action == "reserve" and request_id not in entries:
            ledger.reserve(request_id, worker, service_ns)
            entries[request_id] = (worker, service_ns)
        elif action == "begin" and request_id in entries:
            ledger.begin(request_id, service_ns)
            entries[request_id] = (entries[request_id][0], service_ns)
        elif action == "release":
            ledger.release(request_id)
            entries.pop(request_id, None)
        ledger.check()
        sums = [sum(ns for on, ns in entries.values() if on == group) for group in WORKERS]
        assert list(ledger.outstanding()) == sums
    for request_id in entries:
        ledger.release(request_id)
    assert ledger.total_ns == 0
