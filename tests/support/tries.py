"""A pool of four workers and its prefix books, to scan by hand."""

from tests.support.builders import BLOCK_TOKENS, a_cluster, a_prefill_time
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.link import LinkConfig
from vertumnus.policy.ledger import Ledger
from vertumnus.policy.links import Links
from vertumnus.policy.pool import PoolState
from vertumnus.policy.prefix.config import ManagerConfig
from vertumnus.policy.prefix.demand import Demand
from vertumnus.policy.prefix.index import PrefixIndex
from vertumnus.policy.prefix.manager import PrefixManager
from vertumnus.policy.prefix.transfers import TransferBook

WIDE, PAIR, LEFT, RIGHT = CpGroup(0, 2), CpGroup(2, 2), CpGroup(4, 1), CpGroup(5, 1)
"""Two workers of degree 2, two of degree 1."""
BRANCH = (1, 2, 3, 4)
OTHER = (1, 2, 8, 9)
"""Two prefixes of four blocks that share two."""
MS = 1_000_000


class Trie:
    """Index, counters, links and queues; a block is 1,000 bytes and takes 1 ms, a copy 3 ms before that."""

    def __init__(self, config: ManagerConfig | None = None, blocks_per_rank: int = 64) -> None:
        self.config = config or ManagerConfig(theta_intra=2.0, theta_inter_s=0.1, theta_reclaim=0.5)
        self.pool = PoolState(a_cluster({2: 2, 1: 2}).initial_composition(), blocks_per_rank)
        self.index = PrefixIndex(self.pool.groups)
        self.demand = Demand(0.5, self.config.theta_intra, self.config.theta_inter_s * 1e9)
        self.ledger = Ledger(self.pool.groups)
        self.book = TransferBook(self.pool, Links(LinkConfig(bytes_per_s=1e6, latency_s=0.003), 1_000))

    def manager(self) -> PrefixManager:
        """The manager of this trie, its budget counted in blocks of 1,000 bytes over scans of 20 s."""
        return PrefixManager(
            self.config,
            self.pool,
            self.index,
            self.demand,
            self.ledger,
            self.book,
            a_prefill_time(),
            scan_interval_s=20.0,
            block_tokens=BLOCK_TOKENS,
            block_bytes=1_000,
        )

    def hold(self, worker: CpGroup, path: tuple[int, ...] = BRANCH) -> None:
        """Let *worker* hold *path*, block i on its rank i mod C."""
        self.index.install(path, 0, [worker.first_rank + i % worker.degree for i in range(len(path))])

    def access(self, keys: tuple[int, ...], degree: int, times: int) -> None:
        """Count *times* reuses of each of *keys*."""
        for key in keys * times:
            self.demand.add_access(key, degree)

    def miss(self, keys: tuple[int, ...], degree: int, each_ms: int) -> None:
        """Count that much missed time for each of *keys*."""
        for key in keys:
            self.demand.add_missed(key, degree, each_ms * MS)

    def load(self, worker: CpGroup, milliseconds: int, request_id: int = 0) -> None:
        """Queue a request of that time at *worker*."""
        self.ledger.reserve(request_id, worker, milliseconds * MS, 0, 1, ())
