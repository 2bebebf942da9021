"""Admission control: accept, queue or reject a request by its predicted TTFT (off by default).

The prediction is the chosen offer's wait and service time with the hand-off and the first decode step,
and a margin that covers most of what such predictions were short by lately. What cannot meet its target
any more is queued behind those that can; what is hopeless is rejected, with a time to try again, so that
it takes no work from the others. Rejections count as missed. No length class, told apart by the targets,
is rejected much more often than all are.
"""

from collections import deque
from math import ceil
from typing import Literal, NamedTuple

from msgspec import Struct

from vertumnus.domain.orders import Reject
from vertumnus.domain.profile import ModelProfile
from vertumnus.domain.request import Request
from vertumnus.domain.units import Nanoseconds, RequestId, to_ns, to_seconds
from vertumnus.policy.placement import Offer

MIN_RESIDUALS = 20
"""Measured residuals of a class that a margin needs; below there is none."""


class AdmissionConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """When a request is let in. Requests without a TTFT target always are."""

    enabled: bool = False
    """Whether anybody is kept out."""
    accept_within: float = 1.0
    """Predicted TTFT up to this multiple of the target is accepted, > 0."""
    queue_within: float = 2.0
    """Up to this multiple it is queued behind the others, above it is rejected, >= accept_within."""
    deferral_s: float = 2.0
    """What a queued request's place in its worker's queue is put back by, in the queue's own order [s]."""
    residual_share: float = 0.8
    """Share of the measured residuals that the margin covers, in [0, 1)."""
    unfairness: float = 0.05
    """How far a length class's share of rejections may exceed that of all requests, in [0, 1]."""
    window: int = 256
    """Requests that shares and residuals are taken over."""

    def __post_init__(self) -> None:
        if not 0.0 < self.accept_within <= self.queue_within < float("inf"):
            found = f"accept_within {self.accept_within}, queue_within {self.queue_within}"
            raise ValueError(
                f"accept_within and queue_within must be 0 < accept_within <= queue_within, got {found}"
            )
        if not 0.0 <= self.deferral_s < float("inf"):
            raise ValueError(f"deferral_s must be at least 0, got {self.deferral_s}")
        if not 0.0 <= self.residual_share < 1.0:
            raise ValueError(f"residual_share must be in [0, 1), got {self.residual_share}")
        if not 0.0 <= self.unfairness <= 1.0:
            raise ValueError(f"unfairness must be in [0, 1], got {self.unfairness}")
        if not MIN_RESIDUALS <= self.window <= 100_000:
            raise ValueError(f"window must be in [{MIN_RESIDUALS}, 100000], got {self.window}")


class Verdict(NamedTuple):
    """What becomes of a request."""

    kind: Literal["accept", "queue", "reject"]
    predicted_ns: Nanoseconds = 0
    """Predicted TTFT, the margin included."""


class _Expected(NamedTuple):
    """What was predicted of a request that was let in."""

    target_ns: Nanoseconds
    prefilled_ns: Nanoseconds
    """When its prefill should end."""


class Admission:
    """Judges requests, and learns how far its predictions were off."""

    def __init__(self, config: AdmissionConfig, profile: ModelProfile | None) -> None:
        """Judge by *config*; *profile* tells what follows a prefill, nothing when it is None."""
        self._config = config
        self._profile = profile
        self._judged: deque[tuple[Nanoseconds, bool]] = deque(maxlen=config.window)
        """Class, and whether it was rejected."""
        self._residuals: dict[Nanoseconds, deque[Nanoseconds]] = {}
        self._let_in: dict[RequestId, _Expected | None] = {}
        """Open requests; None where the prediction does not hold any more."""

    def judge(self, request: Request, offer: Offer, now: Nanoseconds) -> Verdict:
        """Judge *request*, which would go by *offer*; who was let in once is placed again in any case."""
        target = request.ttft_target_ns
        if not self._config.enabled or target is None or request.request_id in self._let_in:
            return ACCEPTED
        prefilled = now + offer.queue_ns + offer.service_ns
        predicted = prefilled - request.arrival_ns + self._after_prefill(request) + self._margin(target)
        kind = self._kind(target, predicted)
        self._judged.append((target, kind == "reject"))
        if kind != "reject":  # what is queued behind others ends later than was asked for here
            expected = _Expected(target, prefilled) if kind == "accept" else None
            self._let_in[request.request_id] = expected
        return Verdict(kind, predicted)

    def deferral(self, verdict: Verdict) -> int:
        """Return what to add to the priority of a request with *verdict*."""
        return to_ns(self._config.deferral_s) if verdict.kind == "queue" else 0

    def refusal(self, request: Request, verdict: Verdict) -> Reject:
        """Return the order that turns *request* away, with when its turn might come."""
        target = to_seconds(request.ttft_target_ns or 0)
        predicted = to_seconds(verdict.predicted_ns)
        retry_after_s = round(predicted - self._config.accept_within * target, 3)
        reason = (
            f"admission: predicted TTFT {predicted:.3f} s, target {target:.3f} s; "
            f"try again in {retry_after_s:.1f} s"
        )
        return Reject(request.request_id, "rejected", reason, retry_after_s)

    def prefilled(self, request_id: RequestId, at: Nanoseconds) -> None:
        """Learn from the end of a prefill."""
        expected = self._let_in.get(request_id)
        if expected is not None:
            residuals = self._residuals.setdefault(expected.target_ns, deque(maxlen=self._config.window))
            residuals.append(at - expected.prefilled_ns)
            self._let_in[request_id] = None

    def returned(self, request_id: RequestId) -> None:
        """Note that a request is to be placed again: nothing is predicted of it any more."""
        if request_id in self._let_in:
            self._let_in[request_id] = None

    def ended(self, request_id: RequestId) -> None:
        """Forget a request."""
        self._let_in.pop(request_id, None)

    def _kind(self, target: Nanoseconds, predicted: Nanoseconds) -> Literal["accept", "queue", "reject"]:
        if predicted <= self._config.accept_within * target:
            return "accept"
        if predicted <= self._config.queue_within * target or not self._may_reject(target):
            return "queue"
        return "reject"

    def _may_reject(self, target: Nanoseconds) -> bool:
        """Return whether one more rejection leaves the class no worse off than is allowed."""
        rejected = [cls for cls, was_rejected in self._judged if was_rejected]
        members = sum(cls == target for cls, _ in self._judged) + 1
        share = (rejected.count(target) + 1) / members
        return share <= (len(rejected) + 1) / (len(self._judged) + 1) + self._config.unfairness

    def _margin(self, target: Nanoseconds) -> Nanoseconds:
        residuals = self._residuals.get(target, ())
        if len(residuals) < MIN_RESIDUALS:
            return 0
        covered = max(1, ceil(self._config.residual_share * len(residuals)))
        return max(0, sorted(residuals)[covered - 1])

    def _after_prefill(self, request: Request) -> Nanoseconds:
        profile = self._profile
        if profile is None:
            return 0
        return profile.handoff(request.input_tokens) + to_ns(profile.decode_step_s)


ACCEPTED = Verdict("accept")
"""Let in without a look."""
