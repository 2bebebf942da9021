"""Engines that several live tests share, and the proof that a test session leaves nothing running."""

import os
from collections.abc import Iterator

import pytest
import torch

from tests.support.live_driver import Driver, a_cluster, a_plan, running
from tests.support.rank_processes import ranks_started_by


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """Compute references with one thread: beside busy ranks, two wait for one another 20 times as long."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


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


@pytest.fixture(scope="session", params=["shared", "pairwise"])
def moving(request: pytest.FixtureRequest, nothing_left: None) -> Iterator[Driver]:
    """Four ranks that split and merge, first as one worker, and a decode rank; for both transports."""
    cluster = a_cluster({4: 1}, blocks_per_rank=512)
    with running(a_plan(cluster, transport=request.param)) as driver:
        yield driver
