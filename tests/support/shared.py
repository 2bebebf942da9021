"""Where the data sets lie that are too large for this repository, if they are here at all."""

from pathlib import Path

_BESIDE = Path(__file__).resolve().parents[2].parent / "shared"

SHARED: Path | None = _BESIDE if _BESIDE.is_dir() else None
"""The folder beside the checkout; tests that need it are skipped where it is missing."""
