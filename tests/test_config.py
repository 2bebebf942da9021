"""Reading a run's config from a plain tree: what is accepted, and the words of what is not."""

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vertumnus.config import RunConfig, nearest, to_run_config, validate
from vertumnus.config.reading import UNREADABLE, TreeReader, key_paths
from vertumnus.domain.errors import ConfigError
from vertumnus.policy.config import PaperPolicy, StaticPolicy

TREE: dict[str, Any] = {
    "name": "a run",
    "purpose": "a test",
    "backend": {"kind": "sim"},
    "cluster": {
        "gpus": 8,
        "degrees": [2, 4],
        "composition": {4: 1, 2: 2},
        "ranks_per_node": 8,
        "blocks_per_rank": 100,
        "decode": {"ranks": 1, "slots_per_rank": 8, "tokens_per_rank": 100_000},
    },
    "profile": {
        "model": "m",
        "hardware": "h",
        "provenance": "made up for tests",
        "degrees": [2, 4],
        "prefill": {
            "startup_s": 0.01,
            "per_uncached_s": 1e-5,
            "per_cached_s": 1e-6,
            "divided_per_uncached_s": 1e-5,
            "divided_per_pair_s": 1e-9,
        },
        "handoff_base_s": 0.01,
        "handoff_per_token_s": 1e-6,
        "decode_step_s": 0.02,
        "kv_bytes_per_token": 1000,
    },
    "model": None,
    "workload": {"name": "w", "purpose": "p", "generator": "tool_agent"},
    "arrival": {"rate": 3},
    "slo": {"buckets": [{"below_tokens": 8192, "ttft_s": 1}, {"ttft_s": 5}]},
    "policy": {"name": "paper"},
    "cache": {},
    "records": {},
}


def tree(**changes: Any) -> dict[str, Any]:
    """Return the valid tree with each ``a__b=value`` of *changes* set at the key ``a.b``."""
    changed = copy.deepcopy(TREE)
    for path, value in changes.items():
        *above, key = path.split("__")
        at = changed
        for name in above:
            at = at[name]
        at[key] = value
    return changed


def problems(**changes: Any) -> tuple[str, ...]:
    """Return what is said about the tree with *changes*."""
    with pytest.raises(ConfigError) as caught:
        to_run_config(tree(**changes))
    return caught.value.problems


def test_a_valid_tree_becomes_frozen_structs() -> None:
    """Lists become tuples, defaults are filled in, the policy is the variant that its name says."""
    config = to_run_config(TREE)
    assert config.cluster.degrees == (2, 4)
    assert config.policy == PaperPolicy()
    assert config.arrival.rate == 3.0
    assert config.slo.buckets[1].below_tokens is None
    assert validate(config) == []


def test_degree_keys_may_come_as_text_and_the_later_one_wins() -> None:
    """Hydra adds ``composition.4=2`` beside the file's ``4: 1`` as the text "4"."""
    config = to_run_config(tree(cluster__composition={4: 1, 2: 0, "4": 2}))
    assert config.cluster.composition == {4: 2, 2: 0}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"policy__betta": 2}, "policy.betta: unknown key for policy paper; did you mean policy.beta?"),
        ({"sed": 3}, "sed: unknown key; did you mean seed?"),
        ({"beta": 3}, "beta: unknown key; did you mean policy.beta?"),
        ({"cluster__decode__slot_per_rank": 3}, "cluster.decode.slot_per_rank: unknown key; did you mean "),
        ({"cluster__decode__zzz": 3}, "cluster.decode.zzz: unknown key; allowed: ranks, slots_per_rank"),
        (
            {"slo__buckets": [{"ttft": 1}]},
            "slo.buckets[0].ttft: unknown key; did you mean slo.buckets[0].ttft_s",
        ),
        (
            {"policy__length_threshold": 9},
            "policy.length_threshold: unknown key for policy paper; allowed: beta",
        ),
    ],
)
def test_an_unknown_key_is_named_with_the_one_that_was_meant(changes: dict[str, Any], said: str) -> None:
    """Unknown keys are errors at every depth: a flag that would be ignored is never accepted."""
    assert any(problem.startswith(said) for problem in problems(**changes))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seed": "x"}, "seed: found 'x', must be a whole number"),
        ({"seed": True}, "seed: found true, must be a whole number"),
        ({"cluster__gpus": 8.5}, "cluster.gpus: found 8.5, must be a whole number"),
        ({"cluster__gpus": None}, "cluster.gpus: found null, must be a whole number"),
        ({"cluster": 3}, "cluster: found 3, must be a group of keys: gpus, "),
        (
            {"cluster__degrees": "2,4"},
            "cluster.degrees: found '2,4', must be a list, each item a whole number",
        ),
        ({"cluster__degrees": [2, "x"]}, "cluster.degrees[1]: found 'x', must be a whole number"),
        (
            {"cluster__composition": {"two": 4}},
            "cluster.composition.two: found 'two', must be a whole number",
        ),
        ({"arrival__rate": "fast"}, "arrival.rate: found 'fast', must be a number"),
        ({"arrival__patience_s": "long"}, "arrival.patience_s: found 'long', must be a number or null"),
        ({"arrival__patience_s": 0}, "arrival.patience_s: must be at least 1e-09, got 0"),
        ({"arrival__patience_s": 1e10}, "arrival.patience_s: found 10000000000.0, must be within +-1,000,"),
        ({"policy__queue_estimate": "remains"}, "policy.queue_estimate: found 'remains', must be one of "),
        ({"policy__name": "papr"}, "policy.name: found 'papr', must be one of vertumnus, paper, homo, "),
        ({"backend": {}}, "backend.kind: found null, must be one of sim, live"),
    ],
)
def test_a_value_of_the_wrong_type_is_shown_with_what_is_allowed(changes: dict[str, Any], said: str) -> None:
    """Key path, found value, allowed type or names."""
    assert [problem[: len(said)] for problem in problems(**changes)] == [said]


@pytest.mark.parametrize("value", ["???", None])
def test_a_required_key_that_nobody_gave_is_said_to_be_missing(value: str | None) -> None:
    """``???`` in a file and an absent key are the same: policy static needs its threshold."""
    policy = {"name": "static"} | ({"length_threshold": value} if value else {})
    assert problems(policy=policy) == (
        "policy.length_threshold: required, but not set; must be a whole number",
    )


def test_out_of_range_values_are_named_by_their_key() -> None:
    """The structs' own checks speak in the same form, several at once."""
    assert problems(policy__beta=0.5, workload__start_s=-2, workload__requests=0) == (
        "workload.start_s: must be at least 0, got -2",
        "workload.requests: must be at least 1, got 0",
        "policy.beta: must be at least 1, got 0.5",
    )


def test_all_problems_come_at_once() -> None:
    """A misspelt key, a bad type, a bad range and a broken rule between parts: one look shows all four."""
    found = problems(policy__betta=2, seed="x", arrival__rate=-1, cluster__gpus=9)
    assert [problem.partition(":")[0] for problem in found] == [
        "arrival.rate",
        "policy.betta",
        "seed",
        "cluster.composition",
    ]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"cluster__gpus": 40},
            "cluster.composition: the degrees add up to 8 (2*2 + 1*4), must equal cluster.gpus = 40",
        ),
        (
            {"cluster__composition": {8: 1}},
            "cluster.composition.8: degree 8 is not supported here; allowed: [2, 4]",
        ),
        ({"cluster__degrees": [2, 3, 4]}, "cluster.degrees: found 3, each degree must be a power of two"),
        ({"cluster__degrees": [4, 2]}, "cluster.degrees: found [4, 2], must ascend without repeats"),
        ({"cluster__ranks_per_node": 2}, "cluster.degrees: found 4, a group must fit a node of 2 ranks"),
        ({"cluster__decode__ranks": 10**9}, "cluster.decode.ranks: must be at most 65,536, got 1000000000"),
        ({"profile": None}, "profile: found null, backend sim needs one"),
        ({"profile__degrees": [2]}, "cluster.degrees: found 4, profile m on h covers [2] (profile.degrees)"),
        ({"backend": {"kind": "live"}}, "model: found null, backend live needs one"),
        (
            {"backend": {"kind": "live", "check_memory": True}, "cache": {"report_delay_s": 5}},
            "cache.report_delay_s: found 5, must be 0 with backend.check_memory=true",
        ),
        (
            {"policy": {"name": "homo"}},
            "cluster.composition: found {4: 1, 2: 2}, policy homo needs all workers at one",
        ),
    ],
)
def test_rules_between_the_parts(changes: dict[str, Any], said: str) -> None:
    """What no part can know alone: the pool, the profile, the model and the policy must fit each other."""
    assert any(problem.startswith(said) for problem in problems(**changes))


def test_a_threshold_without_two_degrees_is_refused() -> None:
    """A static threshold on workers of one degree would be ignored."""
    policy = {"name": "static", "length_threshold": 4096}
    assert to_run_config(tree(policy=policy)).policy == StaticPolicy(length_threshold=4096)
    (said,) = problems(policy=policy, cluster__composition={4: 2})
    assert said.startswith("policy.length_threshold: found 4096, has no effect on workers of one degree")


def test_arrival_keys_that_exclude_one_another_conflict() -> None:
    """Two arrival processes at once are an error, not a silent choice (a replay with a request rate)."""
    (said,) = problems(arrival={"rate": 10, "time_scale": 0.5})
    assert said == "arrival: rate, time_scale and load exclude one another, got rate=10, time_scale=0.5"


def test_every_key_path_can_be_suggested() -> None:
    """The suggestions know the keys of every variant."""
    paths = set(key_paths(RunConfig))
    assert {"policy.beta", "policy.length_threshold", "backend.noise_sigma", "model.layers"} <= paths


@given(st.sampled_from(sorted(key_paths(RunConfig))), st.data())
def test_a_key_with_one_letter_lost_is_recognised(path: str, data: st.DataObject) -> None:
    """A name is nearest to itself with one letter missing, or to a name just as near."""
    name = path.rpartition(".")[2]
    lost = data.draw(st.integers(0, len(name) - 1))
    if len(name) > 3:
        assert nearest(name[:lost] + name[lost + 1 :], [name]) == name


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "gpus", "degrees", "kind", "x"]), inner, max_size=3)
    ),
)


@settings(max_examples=30, deadline=None)
@given(anything, st.sampled_from(["cluster", "policy", "backend", "slo", "profile"]))
def test_no_value_makes_the_reader_itself_fail(value: object, name: str) -> None:
    """Whatever stands where a group should, the answer is a list of problems."""
    reader = TreeReader(RunConfig)
    read = reader.fields(RunConfig, TREE | {name: value}, "")
    assert (read[name] is UNREADABLE) == bool(reader.problems)
