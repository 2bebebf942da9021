"""Engines that several live tests share, and the proof that a test session leaves nothing running."""

import os
from collections.abc import Iterator

import pytest

from tests.support.live_driver import Driver, a_cluster, a_plan, running
from tests.support.rank_processes import ranks_started_by


@pytest.fixture(scope="session")
def nothing_left() -> Iterator[None]:
    """Comes down after every engine of the session: no rank may be there then."""
    yield
    assert ranks_started_by(os.getpid()) == []


@pytest.fixture(scope="session")
def shared(nothing_left: None) -> Iterator[Driver]:
    """One degree-2 and two degree-1 workers and a decode rank, KV in shared memory."""
    with running(a_plan(a_cluster({2: 1, 1: 2}))) as driver:
        yield driver


@pytest.fixture(scope="session")
def pairwise(nothing_left: None) -> Iterator[Driver]:
    """One degree-2 worker and a decode rank, KV in messages."""
    with running(a_plan(a_cluster({2: 1}), transport="pairwise")) as driver:
        yield driver
