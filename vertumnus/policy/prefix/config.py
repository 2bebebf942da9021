"""What the prefix manager does at a scan, every part with its own switch (sec. 7.2, Algorithm 2)."""

from typing import Literal

from msgspec import Struct


class ManagerConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Replication and reclamation; the defaults are the published rule with our starting values."""

    inter: bool = True
    """Whether a prefix gets its first replica at a degree that has none."""
    intra: bool = True
    """Whether a prefix gets further replicas at a degree that has some."""
    reclaim: bool = True
    """Whether replicas that are hardly reused are deleted."""
    rank_by: Literal["count", "seconds_per_byte"] = "count"
    """``count`` ranks as published, inter by missed per copied block, intra by access per replica;
    ``seconds_per_byte`` ranks both together by predicted seconds saved per copied byte."""
    preferred_degree: Literal["observed", "counterfactual"] = "observed"
    """Whose missed demand counts: the degree preferred with the copies as they are, as published, or as
    if the best copy were everywhere."""
    prefetch: bool = False
    """Whether the blocks that a request will lack where it is placed are copied there while it queues, if
    they come in time; it never waits for them. Not published."""
    theta_inter_s: float = 0.3
    """missed[z, C] above which z is to be copied to degree C [s]."""
    theta_intra: float = 12.0
    """access[z, C] per replica above which z gets another one [reuses]."""
    theta_reclaim: float = 0.3
    """access[z, C] per replica below which one goes, below theta_intra [reuses]."""
    operations_per_scan: int = 8
    """Operations chosen from each of the three lists."""
    replication_bytes_per_s: float | None = None
    """What replication may copy, averaged over a scan interval; null is no bound [bytes/s]."""
    grace_scans: int = 2
    """Scans for which a block is not reclaimed after its last copy was made."""
    background_copies: int = 4
    """Copies for replication under way at a time, each on links that nothing else uses."""
    blocks_per_copy: int = 16
    """A longer path is copied piece by piece, so that a pull never waits for more than this [blocks]."""

    def __post_init__(self) -> None:
        for field in ("theta_inter_s", "theta_intra", "theta_reclaim"):
            if not 0.0 <= getattr(self, field) < float("inf"):
                raise ValueError(f"{field} must be at least 0, got {getattr(self, field)}")
        if self.theta_reclaim >= self.theta_intra:
            raise ValueError(
                f"theta_reclaim must be below theta_intra ({self.theta_intra}), got {self.theta_reclaim}: "
                "what was just copied would be reclaimed"
            )
        for field, least in _LEAST.items():
            if getattr(self, field) < least:
                raise ValueError(f"{field} must be at least {least}, got {getattr(self, field)}")
        budget = self.replication_bytes_per_s
        if budget is not None and not 0.0 <= budget < float("inf"):
            raise ValueError(f"replication_bytes_per_s must be at least 0, or null, got {budget}")


_LEAST = {"operations_per_scan": 1, "grace_scans": 0, "background_copies": 1, "blocks_per_copy": 1}

OFF = ManagerConfig(inter=False, intra=False, reclaim=False)
"""Every copy stays where requests put it."""
