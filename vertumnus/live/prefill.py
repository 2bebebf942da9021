"""Context-parallel prefill."""

from collections.abc import Mapping
from typing import NamedTuple

from torch import Tensor

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.jobs import StepWork
from vertumnus.domain.units import Nanoseconds, Rank, RequestId
from vertumnus.live.communicator import Communicator
from vertumnus.live.kv_store import KvStore
from vertumnus.live.models.qwen3 import Qwen3


class PrefillResult(NamedTuple):
    compute_ns: Nanoseconds
    final_hidden: dict[RequestId, Tensor]
    """[hidden], final norm applied; only on the rank that computed position L - 1."""


class PrefillExecutor:
    def __init__(self, model: Qwen3, store: KvStore, rank: Rank, blocks_per_rank: int) -> None:
        raise NotImplementedError

    def run(
        self,
        works: tuple[StepWork, ...],
        tokens: Mapping[RequestId, Tensor],
        group: CpGroup,
        comm: Communicator,
    ) -> PrefillResult:
        """Raises ProtocolError before any collective when the step cannot be right."""
        raise NotImplementedError
