"""Who may move the composition now: the controller, or operators alone (sec. 6.2).

A move by hand suspends an automatic controller for a stated time (HOLD), and an operator may suspend it
until further notice (MANUAL). Its windows go on meanwhile: what has persisted when it may move again is
acted on at the next window's end, from the composition that it then observes.
"""

from enum import StrEnum
from typing import Literal, TypeAlias

from vertumnus.domain.errors import ConfigError
from vertumnus.domain.units import SECOND, Nanoseconds
from vertumnus.policy.reconfig.config import (
    AdviseController,
    ControllerConfig,
    ManualController,
    OffController,
)

WantedMode: TypeAlias = Literal["auto", "manual", "off"]
"""What an operator may ask for; the other modes follow from the configuration or from a move by hand.

There is no ADVISE by hand: a controller that MANUAL or OFF suspends notes what it leaves, window by window;
judging that in hindsight is a controller of its own (`advise`).
"""


class Mode(StrEnum):
    """Who moves the composition."""

    AUTO = "auto"
    """The controller."""
    HOLD = "hold"
    """Operators; the controller again when a stated time has passed."""
    MANUAL = "manual"
    """Operators."""
    ADVISE = "advise"
    """Operators; the controller says what it would do."""
    OFF = "off"
    """Nobody."""


def configured_mode(config: ControllerConfig) -> Mode:
    """Return the mode that a run with *config* starts in."""
    match config:
        case OffController():
            return Mode.OFF
        case ManualController():
            return Mode.MANUAL
        case AdviseController():
            return Mode.ADVISE
        case _:
            return Mode.AUTO


class ModeSwitch:
    """The mode of one pool."""

    def __init__(self, configured: Mode, hold_ns: Nanoseconds = 0) -> None:
        """Start as *configured*; a move by hand holds an automatic controller for *hold_ns*."""
        self._configured = configured
        self._mode = configured
        self._hold_ns = hold_ns
        self._held_until: Nanoseconds = 0

    def at(self, now: Nanoseconds) -> Mode:
        """Return the mode at *now*."""
        return Mode.HOLD if self._mode == Mode.AUTO and now < self._held_until else self._mode

    def turn(self, wanted: WantedMode) -> None:
        """Hand over to the controller, which also ends a hold; take over from it; or let nobody move.

        ``manual`` ends an ``off`` by hand under any controller. Raises ConfigError where there is no
        controller that moves anything.
        """
        is_ending_off = wanted == "manual" and self._mode == Mode.OFF != self._configured
        if self._configured == Mode.AUTO or wanted == "off":
            self._mode = Mode(wanted)
        elif is_ending_off:
            self._mode = self._configured
        else:
            raise ConfigError(f"{wanted}: controller={self._configured} has no controller that moves workers")
        self._held_until = 0

    def note_move_by_hand(self, now: Nanoseconds) -> None:
        """Hold the controller from *now* on; a second move by hand begins a new hold."""
        self._held_until = now + self._hold_ns

    def check_move_by_hand(self, now: Nanoseconds) -> None:
        """Raise ConfigError when nobody may move anything at *now*."""
        if self._configured == Mode.OFF:
            raise ConfigError("controller=off takes no moves; use controller=manual")
        if self.at(now) == Mode.OFF:
            raise ConfigError("moves were turned off; manual or auto turns them on again")

    def why_not(self, now: Nanoseconds) -> str | None:
        """Return why the controller may not move anything at *now*; None when it may."""
        match self.at(now):
            case Mode.AUTO:
                return None
            case Mode.HOLD:
                return f"on hold until {self._held_until / SECOND:g} s"
            case mode:
                return f"the mode is {mode}"
