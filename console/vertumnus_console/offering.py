"""Which keys do something now, and what they are called then."""

from types import UnionType
from typing import NamedTuple

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.facts import Action
from vertumnus.policy.reconfig.mode import Mode
from vertumnus_console.desk import DeskState, Link
from vertumnus_console.keys import Key
from vertumnus_console.panes.cluster import ClusterPane
from vertumnus_console.panes.trie import TriePane
from vertumnus_console.panes.workers import WorkersPane
from vertumnus_console.player import Snapshot
from vertumnus_console.screen import Pane
from vertumnus_console.view import ClusterView

NEEDS: dict[str, Action] = {
    "split": "split",
    "merge": "merge",
    "drain": "drain",
    "auto": "auto",
    "manual": "manual",
    "freeze": "off",
    "copy": "copy",
    "reclaim": "reclaim",
    "parameters": "tune",
    "undo": "undo",
    "hold": "speed",
}
"""What the run must take for a key to be offered, by the key's name."""
POINTLESS: dict[str, tuple[Mode, ...]] = {
    "auto": (Mode.AUTO,),
    "manual": (Mode.MANUAL, Mode.ADVISE, Mode.OFF),
}
"""Modes in which a key that asks for another has nothing to offer; pressed, it asks all the same."""
NEVER: dict[str, tuple[Mode, ...]] = {
    "auto": (Mode.MANUAL, Mode.ADVISE, Mode.OFF),
    "freeze": (Mode.OFF,),
}
"""Runs, by the mode that they started in, that never grant what a key asks for: they have no controller that
moves workers, or take no moves."""
PREVIEWED = ("split", "merge")
"""What can be looked at without being done, as in a replay."""
ON_PANES: dict[str, type[Pane] | UnionType] = {
    **dict.fromkeys(("split", "merge", "drain", "busiest"), ClusterPane | WorkersPane),
    **dict.fromkeys(("copy", "reclaim"), TriePane),
}
"""Where keys are offered that act on what is selected there."""


class Standing(NamedTuple):
    """How things stand on the screen."""

    desk: DeskState
    drawn: Snapshot | None
    pane: Pane
    selected: CpGroup | None
    configured: Mode = Mode.AUTO
    """What the run was started with."""


def is_offered(name: str, standing: Standing) -> bool:
    """Return whether the key called *name* does something now."""
    desk, drawn = standing.desk, standing.drawn
    if name in ON_PANES and not isinstance(standing.pane, ON_PANES[name]):
        return False
    if name == "undo" and not _has_tuned(drawn, desk.who):
        return False
    if name in NEVER and standing.configured in NEVER[name]:
        return False
    if drawn is not None and drawn.view.mode in POINTLESS.get(name, ()):
        return False
    needed = NEEDS.get(name)
    if needed is not None:
        return needed in desk.actions or (name in PREVIEWED and desk.link is Link.NONE)
    if name in ("faster", "slower"):
        return "speed" in desk.actions if drawn is not None and drawn.is_live else True
    return True


def as_it_is(key: Key, standing: Standing) -> Key:
    """Return *key* with the label of what it would do now."""
    label = None if standing.drawn is None else _label(key, standing.drawn.view, standing)
    return key if label is None else key._replace(label=label)


def held(view: ClusterView) -> set[CpGroup]:
    """Return the workers that operators have drained."""
    return {each.group for each in view.workers if each.held_by is not None}


def _label(key: Key, view: ClusterView, standing: Standing) -> str | None:
    """Return another label than the key's own; None when that one is right."""
    if key.name == "freeze" and view.mode == "off":
        return "Unfreeze"
    if key.name == "hold" and view.speed == 0.0:
        return "Go on"
    if key.name in PREVIEWED and standing.desk.link is Link.NONE:
        return f"{key.label}?"
    if key.name == "drain" and standing.selected in held(view):
        return "Reopen"
    return None


def _has_tuned(drawn: Snapshot | None, who: str) -> bool:
    """Return whether *who* changed a parameter lately and did not change it back."""
    acts = () if drawn is None else drawn.view.acts
    done = [act.what for act in acts if act.accepted and act.who == who]
    return sum(what.startswith("tune") for what in done) > done.count("undo")
