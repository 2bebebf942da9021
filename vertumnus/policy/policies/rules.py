"""From a policy's parameters to the cost that it charges."""

from vertumnus.policy.config import PolicyConfig
from vertumnus.policy.placement import CostRule
from vertumnus.policy.policies.paper import PaperPolicy, PublishedCosts
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


def cost_rule(policy: PolicyConfig) -> CostRule:
    """Return the costs that *policy* charges."""
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
