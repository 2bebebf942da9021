"""Whatever a console may send, a run takes it as done or refused, goes on, and its log can hold it."""

import json
from collections.abc import Iterator
from typing import get_args

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.builders import a_control_plane, a_request
from vertumnus.actions.protocol import beyond_the_log, from_console
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.codec import INPUT, ORDER, Body, Record, decode_batch, encode_batch
from vertumnus.domain.facts import Action, OperatorActed, RequestArrived, TimerFired
from vertumnus.domain.orders import Answer
from vertumnus.domain.units import SECOND
from vertumnus.policy.config import PaperPolicy, PolicyConfig, StaticPolicy
from vertumnus.policy.control_plane import ControlPlane
from vertumnus.policy.correction import CorrectionConfig
from vertumnus.policy.reconfig.config import (
    ControllerConfig,
    ManualController,
    ThresholdsController,
    WhatIfController,
)

POLICIES = (PaperPolicy(), StaticPolicy(length_threshold=100))
CONTROLLERS = (ManualController(), WhatIfController(), ThresholdsController())
KAPPA = {1: 1.0, 2: 1.0}
NAMES = (
    "policy.beta",
    "policy.gpu_time_weight",
    "policy.length_threshold",
    "correction.enabled",
    "controller.window_s",
    "controller.upper",
    "controller.load",
    "controller.cooldown_windows",
)

small = st.integers(-5, 5)
ints = small | st.integers(-(10**21), 10**21) | st.sampled_from([2**63, 2**63 - 1, -(2**63)])
floats = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-30, 300).map(lambda n: 10.0**n)
texts = st.text(max_size=5)


def an_act(actions: tuple[str, ...], **fields: st.SearchStrategy) -> st.SearchStrategy[dict[str, object]]:
    """Messages of some *actions*, whose other *fields* may be left out."""
    named = {"type": st.just("act"), "number": ints, "action": st.sampled_from(actions)}
    return st.fixed_dictionaries(named, optional=fields)


acts = st.one_of(
    an_act(("split", "merge", "drain", "reopen"), workers=st.lists(st.tuples(small, small), max_size=3)),
    an_act(("copy", "reclaim"), workers=st.lists(st.tuples(small, small), max_size=2), value=ints),
    an_act(("tune",), setting=st.sampled_from(NAMES), value=ints | floats | texts),
    an_act(
        get_args(Action),
        workers=st.lists(st.tuples(ints, ints), max_size=3),
        setting=texts,
        value=st.none() | ints | floats | texts,
    ),
)


def a_plane(policy: PolicyConfig, controller: ControllerConfig) -> ControlPlane:
    return a_control_plane(
        policy=policy, controller=controller, kappa=KAPPA, correction=CorrectionConfig(enabled=True)
    )


AN_ACT = {"type": "act", "number": 1}
A_TUNE = AN_ACT | {"action": "tune"}


def facts(told: list[dict[str, object]]) -> Iterator[OperatorActed]:
    """The facts that a server makes of what a console sends."""
    for number, message in enumerate(told):
        act = from_console(json.dumps(message).encode())
        if not beyond_the_log(act):
            yield OperatorActed(number, number, "ann", act.action, act.workers, act.setting, act.value)


@settings(max_examples=200)
@example([AN_ACT | {"action": "split", "workers": [(-5, 4)]}], POLICIES[0], CONTROLLERS[0])
@example([AN_ACT | {"action": "merge", "workers": [(0, 0), (1, 0)]}], POLICIES[0], CONTROLLERS[0])
@example([A_TUNE | {"setting": "policy.beta", "value": 10**20}], POLICIES[0], CONTROLLERS[0])
@example([A_TUNE | {"setting": "controller.window_s", "value": 1e11}], POLICIES[0], CONTROLLERS[2])
@example([A_TUNE | {"setting": "policy.gpu_time_weight", "value": 1e300}], POLICIES[0], CONTROLLERS[0])
@given(st.lists(acts, max_size=4), st.sampled_from(POLICIES), st.sampled_from(CONTROLLERS))
def test_every_act_is_done_or_refused(told, policy, controller) -> None:
    """One answer each, never an exception; a request, a scan and a window's end after it can be logged."""
    control = a_plane(policy, controller)
    control.start()
    records: list[Record] = []

    def happen(fact: Body) -> list[Body]:
        orders = control.handle(fact)
        records.extend([Record(INPUT, fact), *(Record(ORDER, order) for order in orders)])
        return orders

    for fact in facts(told):
        answers = [order for order in happen(fact) if isinstance(order, Answer)]
        assert [answer.action_id for answer in answers] == [fact.action_id]
        assert answers[0].accepted or answers[0].reason
    happen(RequestArrived(10, a_request(1)))
    for name in ("scan", "window"):
        happen(TimerFired(20 * SECOND, name, 20 * SECOND))
    control.check()
    assert decode_batch(encode_batch(records)) == records


@pytest.mark.parametrize(
    ("worker", "shown"),
    [((-5, 4), "-5x4"), ((0, 0), "0x0"), ((1, 2), "1x2"), ((4, 1), "4x1"), ((0, 3), "0x3")],
)
@pytest.mark.parametrize("action", ["split", "merge", "drain", "copy", "undo"])
def test_a_worker_that_cannot_be_is_named(action, worker, shown) -> None:
    """Negative, empty, unaligned, beyond the pool, no power of two: refused before anybody uses it."""
    fact = OperatorActed(1, 1, "ann", action, (CpGroup(*worker), CpGroup(1, 1)), "", 7)
    (answer,) = a_plane(POLICIES[0], ManualController()).handle(fact)
    said = f"{action} {shown}: no such worker can be; one is <first rank>x<degree>, aligned ranks of 0 to 3"
    assert not answer.accepted and answer.reason == said
