"""What threads of a rank have to say to each other about a device: on CUDA the host runs ahead of it.

A rank computes in one thread and moves blocks in another (`transfer`). On CUDA each has a stream of its
own: on one stream a block that waits for another rank would hold up the step behind it, and that rank's
step, which waits for this one, would hold up the block. What crosses over is complete before the other thread
hears of it; on a CPU all of this is so by itself.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor

_LOOK_S = 5e-5
"""Between two looks at a work that the device is at [s]."""

_SUCCESS = 0  # c10d's WorkResult


@contextmanager
def own_stream(device: torch.device) -> Iterator[None]:
    """Give this thread a stream of its own on *device*; which device is current is of a thread, too."""
    if device.type != "cuda":
        yield
        return
    with torch.cuda.device(device), torch.cuda.stream(torch.cuda.Stream(device)):  # type: ignore[no-untyped-call]
        yield


def wait_for_stream(device: torch.device) -> None:
    """Return when *device* has done what this thread ordered."""
    if device.type == "cuda":
        torch.cuda.current_stream(device).synchronize()


def keep_for_stream(tensors: Iterable[Tensor]) -> None:
    """Have the memory of *tensors* of another thread kept until this one has done with it."""
    for tensor in tensors:
        if tensor.is_cuda:
            tensor.record_stream(torch.cuda.current_stream(tensor.device))


def wait_for_works(works: Sequence[dist.Work], device: torch.device, limit_s: float) -> None:
    """Return when *works* are over and what they moved is there.

    Raises RuntimeError when one broke or is not over after *limit_s*, which on a CPU its group watches.
    """
    for work in works:
        work.wait()
    if device.type == "cuda":
        _wait_for_device(works, limit_s)


def _wait_for_device(works: Sequence[dist.Work], limit_s: float) -> None:
    # NCCL's wait only has the stream wait. What became of a work is in its result: of a peer that is gone, or
    # of a group that NCCL's watchdog gave up, whose kernels end as if all were well
    deadline = time.monotonic() + limit_s
    for work in works:
        while not work.is_completed():
            if time.monotonic() > deadline:
                raise RuntimeError(f"not over after {limit_s:g} s")
            time.sleep(_LOOK_S)
        result = work.get_future_result()  # type: ignore[attr-defined]  # not in torch's stubs
        if result.done() and result.value() != _SUCCESS:
            raise RuntimeError(f"given up: a peer is gone, or has not come for {limit_s:g} s")
