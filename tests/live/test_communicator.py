"""The all-gather of a CP group over gloo: order, dtypes, and a limit on the wait."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist

from vertumnus.live.communicator import GlooGroup, Solo

pytestmark = pytest.mark.live


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[GlooGroup, GlooGroup]]:
    """Two ranks of one gloo group, as two threads would hold them."""
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    store = dist.HashStore()

    def join(rank: int) -> dist.ProcessGroupGloo:
        return dist.ProcessGroupGloo(store, rank, 2, timedelta(seconds=30))

    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(join, range(2))
        yield GlooGroup(first, timeout_s=30.0), GlooGroup(second, timeout_s=30.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_every_rank_gets_all_by_rank(pair: tuple[GlooGroup, GlooGroup], dtype: torch.dtype) -> None:
    """Row r of the result is what rank r sent, at both ranks alike."""
    assert [(comm.rank_in_group, comm.size) for comm in pair] == [(0, 2), (1, 2)]
    sent = [torch.arange(5, dtype=dtype), torch.arange(5, 10, dtype=dtype)]
    with ThreadPoolExecutor(2) as threads:
        received = list(threads.map(GlooGroup.all_gather, pair, sent))
    assert all(torch.equal(all_Cn, torch.stack(sent)) for all_Cn in received)


def test_a_missing_peer_ends_the_wait(pair: tuple[GlooGroup, GlooGroup]) -> None:
    """A rank whose peer never comes gets an error after its limit, not a hang."""
    impatient = GlooGroup(pair[0]._group, timeout_s=0.05)
    with pytest.raises(RuntimeError, match=r"(?i)timed? ?out"):
        impatient.all_gather(torch.zeros(4))


def test_a_group_of_one_gathers_itself() -> None:
    """Degree 1 has no collective: the result is a view of what was sent."""
    mine_n = torch.arange(3)
    all_Cn = Solo().all_gather(mine_n)
    assert all_Cn.tolist() == [[0, 1, 2]]
    assert all_Cn.data_ptr() == mine_n.data_ptr()
