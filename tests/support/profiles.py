"""Profiles as files."""

from pathlib import Path

import msgspec
import yaml

from vertumnus.domain.profile import ModelProfile


def read_profile(path: Path) -> ModelProfile:
    """Return the profile in *path*."""
    return msgspec.convert(yaml.safe_load(path.read_text(encoding="utf-8")), ModelProfile)
