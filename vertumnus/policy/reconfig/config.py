"""Which controller changes the composition, with its parameters (sec. 6)."""

from collections.abc import Iterator
from math import inf
from typing import Literal, TypeAlias

from msgspec import Struct

from vertumnus.domain.cluster import CpGroup, group_named
from vertumnus.domain.units import to_seconds
from vertumnus.policy.recent import KEPT_NS

LongFractionBy: TypeAlias = Literal["requests", "tokens"]

MOST_WINDOW_S = 1e6
"""Twelve days; what a pool could serve in a window has to fit the tables [s]."""
SWITCH_TIMEOUT_S = 5.0
"""Hundreds of times what a switch takes on a machine with a core a rank."""


class ScriptedAction(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A wish by hand that is known before the run."""

    at_s: float
    """When it is asked for, on the run's clock [s]."""
    action: Literal["split", "merge", "auto", "manual"]
    """A move, or who moves from then on: the controller, or operators alone."""
    workers: tuple[str, ...] = ()
    """The worker to split, or the two to merge, as <first rank>x<degree>; none for a mode."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.at_s < inf:
            raise ValueError(f"at_s must be at least 0, got {self.at_s}")
        if self.action in ("auto", "manual") and self.workers:
            raise ValueError(f"workers must be left out with action={self.action}, got {list(self.workers)}")
        self.groups()

    def groups(self) -> tuple[CpGroup, ...]:
        """Return the workers named. Raises ValueError for a name that is none."""
        return tuple(group_named(name) for name in self.workers)


class Movable(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What every controller has that lets the composition change."""

    switch_timeout_s: float = SWITCH_TIMEOUT_S
    """Time in which every rank must have adopted a new geometry, or the switch fails closed [s]."""
    script: tuple[ScriptedAction, ...] = ()
    """Wishes at set times, as an operator would have them."""


class Thresholds(Movable, frozen=True, kw_only=True):
    """When demand and mix ask for a split or a merge; shared by the controllers that look at them."""

    window_s: float = 20.0
    """H: length of an observation window [s]."""
    upper: float = 1.05
    """Demand above this share of the profiled capacity asks for a split."""
    lower: float = 0.65
    """Demand below this share of the profiled capacity asks for a merge."""
    long_tokens: int = 32_768
    """A prompt of at least this length is long [tokens of the unscaled trace]."""
    long_fraction_by: LongFractionBy = "requests"
    """Whether the long fraction is a share of the requests or of their input tokens."""
    long_change: float = 0.05
    """The long fraction has moved when it differs by more than this from its stable level, in (0, 1)."""
    persistence: int = 2
    """Windows in a row that must show a condition before it is acted on."""
    cooldown_windows: int = 2
    """Windows after a transition in which nothing is asked for and nothing counts as persisting."""
    hold_s: float = 60.0
    """How long a move by hand keeps the controller from moving [s]."""

    def __post_init__(self) -> None:
        problems = [
            *_window_problems(self),
            *self._band_problems(),
            *_timeout_problems(self.switch_timeout_s),
        ]
        if problems:
            raise ValueError("\n".join(problems))

    def _band_problems(self) -> Iterator[str]:
        if not 0.0 < self.upper < inf:
            yield f"upper must be above 0, got {self.upper}"
        elif not 0.0 <= self.lower < self.upper:
            yield f"0 <= lower < upper must hold, found lower {self.lower} and upper {self.upper}"
        if self.long_tokens < 1:
            yield f"long_tokens must be at least 1 token, got {self.long_tokens}"
        if not 0.0 < self.long_change < 1.0:
            yield f"long_change must be in (0, 1), got {self.long_change}"


class ThresholdsController(Thresholds, frozen=True, kw_only=True, tag_field="name", tag="thresholds"):
    """Splits and merges as published: demand against capacity, then the mix of lengths (sec. 6.2)."""


class AdviseController(Thresholds, frozen=True, kw_only=True, tag_field="name", tag="advise"):
    """Says what `thresholds` would do, whether it would pay, and later whether it would have paid."""

    replay_s: float = 60.0
    """How far a forecast looks; its near future are the arrivals of this long before it [s]."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for problem in _replay_problems(self.replay_s, 1.0):
            raise ValueError(problem)


class WhatIfController(Movable, frozen=True, kw_only=True, tag_field="name", tag="what_if"):
    """Makes the split or merge whose forecast is better than that of staying; needs no kappa."""

    window_s: float = 20.0
    """H: time between two forecasts, and length of an observation window [s]."""
    replay_requests: int = 300
    """The near future are the arrivals of the last windows, as many as it takes to bring so many requests,
    but none from before a change of demand (`past`)."""
    replay_s: float = 120.0
    """At most so long a past, in whole windows [s]."""
    horizon_s: float = 60.0
    """A past that is shorter is repeated until it is as long: what a move costs, it costs at once [s].
    With 0 none is repeated, and a forecast looks as far as the past that it replays."""
    load: float = 1.25
    """How many times as fast the requests of the near future come: room for the bursts that may."""
    min_gain: float = 0.1
    """A move is made when the shares of the mean TTFT that its kind would have saved, window by window,
    add up to more than this; what it would have cost takes away from the sum, which never is below 0."""
    turn_factor: float = 2.0
    """As many times ``min_gain`` for a move the other way than the last one for the same demand, and again as
    many times for each turn before: chance must not turn it, least of all to and fro."""
    persistence: int = 1
    """Windows in a row, at least, in which a kind of move would have saved something."""
    cooldown_windows: int = 0
    """Windows after a transition in which no forecast is asked for."""
    candidates: int = 1
    """Splits, and merges, that are looked at: those with the least drain, then the least to reconcile."""
    long_tokens: int = 32_768
    """A prompt of at least this length is long, for the notes only [tokens of the unscaled trace]."""
    long_fraction_by: LongFractionBy = "requests"
    """Whether the long fraction of the notes is a share of the requests or of their input tokens."""
    hold_s: float = 60.0
    """How long a move by hand keeps the controller from moving [s]."""

    def __post_init__(self) -> None:
        problems = [
            *_window_problems(self),
            *_replay_problems(self.replay_s, self.window_s),
            *self._own_problems(),
            *_timeout_problems(self.switch_timeout_s),
        ]
        if problems:
            raise ValueError("\n".join(problems))

    def _own_problems(self) -> Iterator[str]:
        if not 0.0 <= self.horizon_s <= 3600.0:
            yield f"horizon_s must be in [0, 3600], got {self.horizon_s}"
        if not 0.1 <= self.load <= 10.0:
            yield f"load must be in [0.1, 10], got {self.load}"
        if not 1.0 <= self.turn_factor <= 100.0:
            yield f"turn_factor must be in [1, 100], got {self.turn_factor}"
        if not 0.0 <= self.min_gain < 1.0:
            yield f"min_gain must be in [0, 1), got {self.min_gain}"
        for name in ("replay_requests", "candidates", "long_tokens"):
            if getattr(self, name) < 1:
                yield f"{name} must be at least 1, got {getattr(self, name)}"


class ManualController(Movable, frozen=True, kw_only=True, tag_field="name", tag="manual"):
    """Splits and merges only where an operator asks for them."""

    def __post_init__(self) -> None:
        for problem in _timeout_problems(self.switch_timeout_s):
            raise ValueError(problem)


class OffController(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="name", tag="off"
):
    """The composition stays as it starts."""


ControllerConfig: TypeAlias = (
    ThresholdsController | AdviseController | WhatIfController | ManualController | OffController
)


def script_of(controller: ControllerConfig) -> tuple[ScriptedAction, ...]:
    """Return the wishes that are known before the run."""
    return controller.script if isinstance(controller, Movable) else ()


def _window_problems(config: Thresholds | WhatIfController) -> Iterator[str]:
    if not 0.01 <= config.window_s < inf:  # a timer ends each window
        yield f"window_s must be at least 0.01, got {config.window_s}"
    if MOST_WINDOW_S < config.window_s < inf:
        yield f"window_s must be at most {MOST_WINDOW_S:,.0f}, got {config.window_s:g}"
    if config.persistence < 1:
        yield f"persistence must be at least 1 window, got {config.persistence}"
    if config.cooldown_windows < 0:
        yield f"cooldown_windows must be at least 0, got {config.cooldown_windows}"
    if not 0.0 <= config.hold_s < inf:
        yield f"hold_s must be at least 0, got {config.hold_s}"


def _replay_problems(replay_s: float, least_s: float) -> Iterator[str]:
    most_s = to_seconds(KEPT_NS)
    if not least_s <= replay_s <= most_s:
        yield f"replay_s must be at least {least_s:g} and at most {most_s:g} s, got {replay_s}"


def _timeout_problems(switch_timeout_s: float) -> Iterator[str]:
    if not 0.0 < switch_timeout_s < inf:
        yield f"switch_timeout_s must be above 0, got {switch_timeout_s}"
