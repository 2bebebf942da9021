"""Which policy routes, with its parameters; a parameter that a policy does not have is an error."""

from typing import Literal, TypeAlias

from msgspec import Struct


class PaperPolicy(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="name", tag="paper"
):
    """Placement as published (sec. 5.3), FIFO at each worker."""

    beta: float = 1.0
    """Weight of the service time, >= 1: above 1 a prefix hit attracts more than it saves."""
    gpu_time_weight: float = 0.1
    """lambda >= 0: price of GPU time beyond what the smallest eligible degree would use."""
    queue_estimate: Literal["outstanding", "remaining"] = "outstanding"
    """``outstanding`` sums full predicted times, as the formula of sec. 5.3; ``remaining`` takes off
    what the running step has already used, as its prose."""

    def __post_init__(self) -> None:
        if not 1.0 <= self.beta < float("inf"):
            raise ValueError(f"beta must be at least 1, got {self.beta}")
        if not 0.0 <= self.gpu_time_weight < float("inf"):
            raise ValueError(f"gpu_time_weight must be at least 0, got {self.gpu_time_weight}")


class HomoPolicy(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="name", tag="homo"):
    """All workers at one degree; least predicted wait plus cache-aware service time."""


class StaticPolicy(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="name", tag="static"
):
    """Prompts longer than a threshold go to the largest degree, the others to the smallest."""

    length_threshold: int
    """The longest prompt that still goes to the smallest degree [tokens as served]."""

    def __post_init__(self) -> None:
        if self.length_threshold < 1:
            raise ValueError(f"length_threshold must be at least 1 token, got {self.length_threshold}")


class LeastLoadedPolicy(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="name", tag="least_loaded"
):
    """The worker with the least outstanding predicted work, whatever it has cached."""


class RoundRobinPolicy(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="name", tag="round_robin"
):
    """Each eligible worker in turn."""


PolicyConfig: TypeAlias = PaperPolicy | HomoPolicy | StaticPolicy | LeastLoadedPolicy | RoundRobinPolicy


class CacheConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How the prefix index keeps its demand statistics (sec. 7)."""

    scan_interval_s: float = 20.0
    """Time between two decays of the demand counters [s]."""
    decay: float = 0.6
    """Factor of access and missed at each scan, in (0, 1) (Algorithm 2)."""
    demand_floor: float = 0.01
    """A node that nobody holds is forgotten when its access count and its missed seconds are below this."""

    def __post_init__(self) -> None:
        if not 1e-3 <= self.scan_interval_s <= 1e6:
            raise ValueError(f"scan_interval_s must be in [0.001, 1000000], got {self.scan_interval_s}")
        if not 0.0 < self.decay < 1.0:
            raise ValueError(f"decay must be in (0, 1), got {self.decay}")
        if not 0.0 < self.demand_floor < float("inf"):
            raise ValueError(f"demand_floor must be above 0, got {self.demand_floor}")
