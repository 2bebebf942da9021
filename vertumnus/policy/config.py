"""Which policy routes, with its parameters; a parameter that a policy does not have is an error."""

from typing import TypeAlias

from msgspec import Struct

from vertumnus.policy.policies.cache_first import CacheFirstPolicy
from vertumnus.policy.policies.dynamo_kv import DynamoKvPolicy
from vertumnus.policy.policies.lmetric import LMetricPolicy
from vertumnus.policy.policies.paper import PaperPolicy
from vertumnus.policy.policies.sglang_cache_aware import SglangCacheAwarePolicy
from vertumnus.policy.policies.simple import HomoPolicy, LeastLoadedPolicy, RoundRobinPolicy
from vertumnus.policy.policies.static import StaticPolicy
from vertumnus.policy.policies.vertumnus import VertumnusPolicy
from vertumnus.policy.policies.vllm_dp import VllmDpPolicy
from vertumnus.policy.prefix.config import OFF, ManagerConfig

__all__ = [
    "CacheConfig",
    "CacheFirstPolicy",
    "DynamoKvPolicy",
    "HomoPolicy",
    "LMetricPolicy",
    "LeastLoadedPolicy",
    "PaperPolicy",
    "PolicyConfig",
    "RoundRobinPolicy",
    "SglangCacheAwarePolicy",
    "StaticPolicy",
    "VertumnusPolicy",
    "VllmDpPolicy",
]

PolicyConfig: TypeAlias = (
    VertumnusPolicy
    | PaperPolicy
    | HomoPolicy
    | StaticPolicy
    | LeastLoadedPolicy
    | RoundRobinPolicy
    | CacheFirstPolicy
    | LMetricPolicy
    | DynamoKvPolicy
    | VllmDpPolicy
    | SglangCacheAwarePolicy
)


class CacheConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How the prefix index keeps its demand statistics, and what the prefix manager does (sec. 7)."""

    scan_interval_s: float = 20.0
    """Time between two decays of the demand counters [s]."""
    decay: float = 0.6
    """Factor of access and missed at each scan, in (0, 1) (Algorithm 2)."""
    demand_floor: float = 0.01
    """A node that nobody holds is forgotten when its access count and its missed seconds are below this."""
    report_delay_s: float = 0.0
    """Age at which a worker's report of what it holds counts for placements and manager; 0 is at once [s]."""
    manager: ManagerConfig = OFF
    """What is replicated and reclaimed at a scan."""

    def __post_init__(self) -> None:
        if not 1e-3 <= self.scan_interval_s <= 1e6:
            raise ValueError(f"scan_interval_s must be in [0.001, 1000000], got {self.scan_interval_s}")
        if not 0.0 < self.decay < 1.0:
            raise ValueError(f"decay must be in (0, 1), got {self.decay}")
        if not 0.0 < self.demand_floor < float("inf"):
            raise ValueError(f"demand_floor must be above 0, got {self.demand_floor}")
        if not 0.0 <= self.report_delay_s <= 1e6:
            raise ValueError(f"report_delay_s must be in [0, 1000000], got {self.report_delay_s}")
