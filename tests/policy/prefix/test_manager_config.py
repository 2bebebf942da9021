"""Thresholds that contradict one another, and numbers out of range, are refused with the reason."""

import pytest

from vertumnus.policy.config import CacheConfig
from vertumnus.policy.prefix.config import ManagerConfig


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("theta_reclaim", 12.0, r"theta_reclaim must be below theta_intra \(12.0\), got 12.0"),
        ("theta_intra", 0.2, r"theta_reclaim must be below theta_intra \(0.2\), got 0.3"),
        ("theta_inter_s", -0.1, "theta_inter_s must be at least 0, got -0.1"),
        ("theta_intra", float("inf"), "theta_intra must be at least 0, got inf"),
        ("replication_bytes_per_s", -1.0, "replication_bytes_per_s must be at least 0, or null, got -1.0"),
        ("operations_per_scan", 0, "operations_per_scan must be at least 1, got 0"),
        ("grace_scans", -1, "grace_scans must be at least 0, got -1"),
        ("background_copies", 0, "background_copies must be at least 1, got 0"),
        ("blocks_per_copy", 0, "blocks_per_copy must be at least 1, got 0"),
    ],
)
def test_what_cannot_be_is_refused(field: str, value: float, said: str) -> None:
    """The message names the field, the bound and what was found."""
    with pytest.raises(ValueError, match=said):
        ManagerConfig(**{field: value})


@pytest.mark.parametrize("decay", [0.0, 1.0, 1.5])
def test_decay_is_between_0_and_1(decay: float) -> None:
    """At 1 demand never fades, at 0 nothing is known."""
    with pytest.raises(ValueError, match="decay must be in"):
        CacheConfig(decay=decay)
