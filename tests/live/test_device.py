"""What CUDA needs of a rank's threads, with works and tensors that only say that they are on a device."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist

from vertumnus.live.communicator import NcclGroup
from vertumnus.live.device import keep_for_stream, own_stream, wait_for_stream, wait_for_works

CUDA, CPU = torch.device("cuda"), torch.device("cpu")
LIMIT_S = 30.0


class Result:
    """c10d's future of what became of a work."""

    def __init__(self, value: int | None) -> None:
        self._value = value

    def done(self) -> bool:
        return self._value is not None

    def value(self) -> int:
        assert self._value is not None
        return self._value


class DeviceWork:
    """A work that the device has done after *looks* looks."""

    def __init__(self, looks: int | None, result: int | None) -> None:
        self.looks_left = looks
        self.result = result
        self.is_ordered = False

    def wait(self) -> bool:
        self.is_ordered = True
        return True

    def is_completed(self) -> bool:
        assert self.is_ordered
        if self.looks_left:
            self.looks_left -= 1
        return self.looks_left == 0

    def get_future_result(self) -> Result:
        assert self.looks_left == 0, "the result of a work that is not over says nothing"
        return Result(self.result)


@pytest.mark.parametrize("result", [None, 0], ids=["not told yet", "success"])
def test_works_are_waited_for_until_the_device_has_done_them(result: int | None) -> None:
    """All are ordered before the first is looked at, and each is looked at until it is over."""
    works = [DeviceWork(5, result), DeviceWork(0, result)]
    wait_for_works(works, CUDA, LIMIT_S)
    assert [work.looks_left for work in works] == [0, 0] and all(work.is_ordered for work in works)


@pytest.mark.parametrize("result", [1, 2], ids=["timeout", "communicator"])
def test_a_work_that_was_given_up_is_an_error(result: int) -> None:
    """Its kernel has ended like any other: only the result tells."""
    with pytest.raises(RuntimeError, match="a peer is gone, or has not come for 30 s"):
        wait_for_works([DeviceWork(0, 0), DeviceWork(2, result)], CUDA, LIMIT_S)


def test_a_work_that_never_ends_is_an_error() -> None:
    """The host looks for the limit and no longer."""
    with pytest.raises(RuntimeError, match=r"not over after 0\.01 s"):
        wait_for_works([DeviceWork(None, None)], CUDA, 0.01)


def test_a_group_on_devices_settles_its_last_gather_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gathers of a group follow one another: the last stands for all, and none needs no look."""
    waited: list[int] = []
    monkeypatch.setattr(
        "vertumnus.live.communicator.wait_for_works", lambda works, device, limit_s: waited.append(len(works))
    )
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    store = dist.HashStore()

    def gather(rank: int) -> list[torch.Tensor]:
        comm = NcclGroup(dist.ProcessGroupGloo(store, rank, 2, timedelta(seconds=LIMIT_S)), CUDA, LIMIT_S)
        comm.settle()
        gathered = [comm.all_gather(torch.tensor([10 * turn + rank])) for turn in range(3)]
        comm.settle()
        comm.settle()
        return gathered

    with ThreadPoolExecutor(2) as threads:
        for gathered in threads.map(gather, range(2)):
            assert [all_C1.flatten().tolist() for all_C1 in gathered] == [[0, 1], [10, 11], [20, 21]]
    assert waited == [1, 1]


def test_on_a_cpu_there_is_nothing_to_order() -> None:
    """No stream, no device: a machine without CUDA is not asked for either."""
    with own_stream(CPU):
        wait_for_stream(CPU)
        keep_for_stream([torch.zeros(1)])


@pytest.mark.gpu
def test_a_thread_with_a_stream_of_its_own_does_not_wait_for_another() -> None:
    """What another thread's stream is at is not over when this one's is."""
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    device = torch.device("cuda", torch.cuda.device_count() - 1)

    def second() -> bool:
        with own_stream(device):
            assert torch.cuda.current_device() == device.index
            block = torch.zeros(1, device=device)
            wait_for_stream(device)
            assert block.item() == 0.0
            return not busy.query()

    with torch.cuda.device(device):
        torch.cuda._sleep(2_000_000_000)
        busy = torch.cuda.Event()
        busy.record()
        with ThreadPoolExecutor(1) as threads:
            assert threads.submit(second).result()
