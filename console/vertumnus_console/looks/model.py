"""How well the prefill-time model fits, and what the controller made of the last windows."""

from typing import NamedTuple

from vertumnus.domain.orders import NoteWindow
from vertumnus.domain.units import Nanoseconds
from vertumnus_console.replay import Replay
from vertumnus_console.residuals import Fit


class ModelLook(NamedTuple):
    """Predictions against what happened."""

    fits: tuple[Fit, ...]
    windows: tuple[NoteWindow, ...]
    """Newest first."""


def model(replay: Replay, _now: Nanoseconds) -> ModelLook:
    """Return the residuals by degree and the controller's windows."""
    return ModelLook(replay.folds.residuals.fits(), tuple(reversed(replay.folds.notes)))
