"""What a rank's process knows about itself, and the few things that both kinds of rank do alike."""

import os
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from vertumnus.live.control import ControlLink
from vertumnus.live.launch import is_orphan
from vertumnus.live.messages import Peer, ToRank
from vertumnus.live.plan import LivePlan

IDLE_MS = 500
"""A rank without work looks this often whether its coordinator is still there [ms]."""


class RankContext(NamedTuple):
    """Who this process is, and where its coordinator listens."""

    peer: Peer
    incarnation: int
    endpoint: str
    run: str
    parent_pid: int

    def connect(self, *, transfers: bool = False) -> ControlLink:
        """Return a new stream to the coordinator, for the calling thread alone."""
        peer = self.peer._replace(transfers=transfers)
        return ControlLink(self.endpoint, self.run, peer, self.incarnation)

    def receive(self, link: ControlLink, wait_ms: int) -> ToRank | None:
        """Return the next message, or None after *wait_ms*; leave the process if nobody is there to send."""
        message = link.receive(wait_ms)
        if message is None and is_orphan(self.parent_pid):
            os._exit(1)  # nobody waits for an orderly end, and a hung group must not delay it
        return message

    def device(self, plan: LivePlan) -> torch.device:
        """Return this rank's device; on CUDA each rank of the run has one of its own."""
        if plan.device == "cpu":
            return torch.device("cpu")
        first = 0 if self.peer.pool == "prefill" else plan.lattice.gpus
        device = torch.device("cuda", first + self.peer.rank)
        torch.cuda.set_device(device)
        return device


def pack_ids(ids: "np.ndarray[tuple[int], np.dtype[np.integer]]") -> bytes:
    """Return token ids as they travel: little-endian int32."""
    return ids.astype("<i4").tobytes()


def unpack_ids(packed: bytes) -> Tensor:
    """Return token ids [R] as int64."""
    return torch.from_numpy(np.frombuffer(packed, dtype="<i4").astype(np.int64))


def pack_state(state_H: Tensor) -> bytes:
    """Return a hidden state [H] as its own bytes."""
    return state_H.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes()


def unpack_state(packed: bytes, dtype: torch.dtype) -> Tensor:
    """Return a hidden state [H] of *dtype*."""
    return torch.frombuffer(bytearray(packed), dtype=dtype)
