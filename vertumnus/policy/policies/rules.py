"""From a policy's parameters to the cost that it charges."""

from vertumnus.policy.config import PolicyConfig
from vertumnus.policy.ledger import Ledger
from vertumnus.policy.placement import CostRule
from vertumnus.policy.policies.cache_first import CacheFirstPolicy, most_cached
from vertumnus.policy.policies.dynamo_kv import DynamoKvCosts, DynamoKvPolicy
from vertumnus.policy.policies.lmetric import LMetricCosts, LMetricPolicy
from vertumnus.policy.policies.paper import PaperPolicy, PublishedCosts
from vertumnus.policy.policies.sglang_cache_aware import SglangCacheAwareCosts, SglangCacheAwarePolicy
from vertumnus.policy.policies.simple import (
    HomoPolicy,
    LeastLoadedPolicy,
    RoundRobinCosts,
    RoundRobinPolicy,
    load,
    work,
)
from vertumnus.policy.policies.static import StaticCosts, StaticPolicy
from vertumnus.policy.policies.vertumnus import ExternalityCosts, VertumnusPolicy
from vertumnus.policy.policies.vllm_dp import VllmDpCosts, VllmDpPolicy


def cost_rule(policy: PolicyConfig, ledger: Ledger) -> CostRule:
    """Return the costs that *policy* charges; *ledger* tells what is placed where."""
    match policy:
        case VertumnusPolicy():
            return ExternalityCosts(policy)
        case PaperPolicy():
            return PublishedCosts(policy.beta, policy.gpu_time_weight)
        case HomoPolicy():
            return work
        case StaticPolicy():
            return StaticCosts(policy)
        case LeastLoadedPolicy():
            return load
        case RoundRobinPolicy():
            return RoundRobinCosts()
        case CacheFirstPolicy():
            return most_cached
        case LMetricPolicy():
            return LMetricCosts(ledger)
        case DynamoKvPolicy():
            return DynamoKvCosts(policy, ledger)
        case VllmDpPolicy():
            return VllmDpCosts(ledger)
        case SglangCacheAwarePolicy():
            return SglangCacheAwareCosts(policy, ledger)


def cost_unit(policy: PolicyConfig) -> str:
    """Return what the costs of *policy* count: "ns" where they are times."""
    match policy:
        case LMetricPolicy():
            return "tokens x requests"
        case DynamoKvPolicy():
            return "tokens"
        case VllmDpPolicy():
            return "requests"
        case SglangCacheAwarePolicy():
            return "requests or blocks"
        case RoundRobinPolicy():
            return "turns"
        case _:
            return "ns"


def weights(policy: PolicyConfig) -> tuple[float, float] | None:
    """Return beta and lambda of a policy that charges the published terms; None for any other."""
    if isinstance(policy, PaperPolicy | VertumnusPolicy):
        return policy.beta, policy.gpu_time_weight
    return None


def policy_name(policy: PolicyConfig) -> str:
    """Return the name that a config calls *policy* by."""
    return str(policy.__struct_config__.tag)
