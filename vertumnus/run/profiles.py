"""The profile that a run loads: what it says about itself, whether it was made here, and for whom."""

from datetime import UTC, date, datetime

from vertumnus.config import RunConfig
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.profile import ModelProfile
from vertumnus.domain.wording import counted
from vertumnus.policy.policies.vllm_dp import VllmDpPolicy

OLD_DAYS = 30
"""From this age on the line about a profile asks whether its numbers still hold [days]."""


def profile_line(profile: ModelProfile, today: date | None = None) -> str:
    """Return one line for the start of a run: what the profile is for, its form, error, and age or origin."""
    age = _age(profile, today or datetime.now(UTC).date())
    parts = [*([age] if age else []), f"{_FORMS[profile.form]} form"]
    parts += ["tensor-parallel workers"] if profile.parallelism == "tensor" else []
    errors = [error for error in profile.errors if error.form == profile.form]
    if errors:
        worst = max(errors, key=lambda error: error.p90)
        parts.append(f"held-out error at most {worst.mean:.1%} mean, {worst.p90:.1%} P90 (CP{worst.degree})")
    undated = "" if age else f"; {profile.provenance.strip()}"
    return f"profile {profile.model} on {profile.hardware}: {', '.join(parts)}{undated}"


def require_hardware(profile: ModelProfile, hardware: str) -> None:
    """Raise ConfigError when *profile* was made on anything but *hardware*."""
    if profile.hardware != hardware:
        raise ConfigError(
            f"profile.hardware: found {profile.hardware!r}, but this run computes on {hardware!r}; "
            f"measure here with: vertumnus profile model={profile.model}, or use profile=none"
        )


def policy_warning(config: RunConfig) -> str | None:
    """Return what to say where the policy is a baseline for other workers than those of the pool, or None.

    It runs all the same: how a rule does on this pool may be the question.
    """
    composition = config.cluster.initial_composition()
    is_tensor = config.profile is not None and config.profile.parallelism == "tensor"
    if is_tensor or not isinstance(config.policy, VllmDpPolicy) or max(composition.counts()) == 1:
        return None
    return (
        f"warning: policy vllm_dp counts requests, made for equal tensor-parallel workers; {composition} are "
        "context-parallel: this is its rule on another pool than vLLM's (cluster=pool40_tp4, a -tp4 profile)"
    )


_FORMS = {"published": "published", "log2": "log2(C)", "per_degree": "per-degree"}


def _age(profile: ModelProfile, today: date) -> str | None:
    days = profile.age_days(today)
    if days is None:
        return None
    told = "today" if days <= 0 else f"{counted(days, 'day')} ago"
    doubt = ", which is long ago: do its numbers still hold?" if days >= OLD_DAYS else ""
    return f"measured {told} ({profile.measured_at}){doubt}"
