"""The configuration of a run: read from a plain tree, checked as a whole."""

from vertumnus.config.effects import without_effect
from vertumnus.config.rules import to_run_config, validate
from vertumnus.config.run_config import BackendConfig, RunConfig, plain_config
from vertumnus.config.wording import did_you_mean, nearest

__all__ = [
    "BackendConfig",
    "RunConfig",
    "did_you_mean",
    "nearest",
    "plain_config",
    "to_run_config",
    "validate",
    "without_effect",
]
