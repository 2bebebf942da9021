"""What is said where a baseline runs on workers that are not its own."""

import pytest
from msgspec import structs

from vertumnus.cli import main
from vertumnus.commandline.hydra_configs import composed, hydra_configs, plain_tree
from vertumnus.config import to_run_config
from vertumnus.run.profiles import policy_warning, profile_line

TENSOR = ("cluster=pool40_tp4", "profile=qwen3_30b_a3b-h20-tp4")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("policy=vllm_dp",), "4 x CP2 + 8 x CP4 are context-parallel"),
        (("policy=vllm_dp", "cluster=pool40_cp4"), "10 x CP4 are context-parallel"),
        (("policy=vllm_dp", *TENSOR), None),
        (("policy=paper",), None),
    ],
)
def test_vllm_dp_is_of_equal_tensor_parallel_workers(words, said) -> None:
    """On context-parallel workers it is said that this is only its rule; on its own pool nothing is."""
    with hydra_configs():
        config = to_run_config(plain_tree(composed(("+experiment=tool_agent", "backend=sim", *words))))
    warning = policy_warning(config)
    assert warning is None if said is None else warning is not None and said in warning


def test_one_gpu_shares_nothing() -> None:
    """On workers of one GPU there is no difference."""
    with hydra_configs():
        config = to_run_config(
            plain_tree(composed(("+experiment=tool_agent", "backend=sim", "policy=vllm_dp")))
        )
    single = structs.replace(config.cluster, degrees=(1,), composition={1: 40})
    assert policy_warning(structs.replace(config, cluster=single)) is None


def test_a_run_and_its_plan_say_so(tmp_path, capsys) -> None:
    """In the head of a run, and in a dry run."""
    words = ["+experiment=tool_agent", "backend=sim", "policy=vllm_dp", f"runs_dir={tmp_path}"]
    assert main([*words, "--dry-run"]) == 0
    assert "warning: policy vllm_dp counts requests" in capsys.readouterr().out
    assert main([*words, "workload.requests=50"]) == 0
    assert "warning: policy vllm_dp counts requests" in capsys.readouterr().err


def test_a_tensor_parallel_profile_says_what_it_is() -> None:
    """The line about the profile names whose times it has."""
    with hydra_configs():
        config = to_run_config(plain_tree(composed(("+experiment=tool_agent", "backend=sim", *TENSOR))))
    assert config.profile is not None
    assert "per-degree form, tensor-parallel workers; " in profile_line(config.profile)
