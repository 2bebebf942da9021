"""Who moves the composition: what an operator may hand over, and how long a move by hand holds."""

import pytest

from vertumnus.domain.errors import ConfigError
from vertumnus.domain.units import SECOND
from vertumnus.policy.reconfig.config import (
    AdviseController,
    ManualController,
    OffController,
    ThresholdsController,
)
from vertumnus.policy.reconfig.mode import Mode, ModeSwitch, configured_mode


def test_each_controller_starts_in_its_mode() -> None:
    """Only a controller that moves workers is AUTO."""
    configs = (ThresholdsController(), AdviseController(), ManualController(), OffController())
    assert [configured_mode(config) for config in configs] == ["auto", "advise", "manual", "off"]


def test_a_move_by_hand_holds_an_automatic_controller() -> None:
    """HOLD lasts until the stated time after the last move by hand, and not at that time any more."""
    mode = ModeSwitch(Mode.AUTO, 10 * SECOND)
    mode.note_move_by_hand(5 * SECOND)
    assert (mode.at(15 * SECOND - 1), mode.why_not(15 * SECOND - 1)) == ("hold", "on hold until 15 s")
    mode.note_move_by_hand(12 * SECOND)
    assert mode.at(15 * SECOND) == "hold"
    assert (mode.at(22 * SECOND), mode.why_not(22 * SECOND)) == ("auto", None)


def test_manual_lasts_until_auto() -> None:
    """MANUAL outlasts a hold, and `auto` ends either at once."""
    mode = ModeSwitch(Mode.AUTO, 10 * SECOND)
    mode.turn("manual")
    mode.note_move_by_hand(0)
    assert (mode.at(60 * SECOND), mode.why_not(60 * SECOND)) == ("manual", "the mode is manual")
    mode.turn("auto")
    assert mode.at(0) == "auto"
    mode.note_move_by_hand(0)
    mode.turn("auto")
    assert mode.at(0) == "auto"


def test_zero_holds_nothing() -> None:
    """With hold_s: 0 a move by hand leaves the controller to itself."""
    mode = ModeSwitch(Mode.AUTO, 0)
    mode.note_move_by_hand(5)
    assert mode.at(5) == "auto"


@pytest.mark.parametrize("configured", [Mode.MANUAL, Mode.ADVISE, Mode.OFF])
@pytest.mark.parametrize("wanted", ["auto", "manual"])
def test_nothing_to_hand_over(configured: Mode, wanted) -> None:
    """Where no controller moves workers a mode is refused by name, and stays."""
    mode = ModeSwitch(configured)
    with pytest.raises(ConfigError, match=f"{wanted}: controller={configured} has no controller that moves"):
        mode.turn(wanted)
    mode.note_move_by_hand(5)
    assert mode.at(6) == configured
