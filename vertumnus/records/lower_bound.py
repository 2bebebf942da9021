"""What no placement can beat: each request alone, at its best degree, with an unlimited shared cache.

The time is the profile's prediction: hand-off and first decode step included, no queue, no noise, every
whole block that an earlier arrival brought reused at once. Means of a run are told as multiples of it.
"""

from collections.abc import Iterable

from vertumnus.domain.profile import ModelProfile
from vertumnus.domain.units import Nanoseconds, to_ns
from vertumnus.records.log import LogHeader
from vertumnus.records.request_record import RequestRecord


class LowerBound:
    """Least TTFT of a request over the degrees that a pool supports."""

    def __init__(self, profile: ModelProfile, degrees: Iterable[int]) -> None:
        """Take *degrees*, of which the profile has to know at least one."""
        self._profile = profile
        self._predict = profile.prefill_time().predict
        self._degrees = sorted(set(degrees) & set(profile.degrees))
        self._decode_step_ns = to_ns(profile.decode_step_s)

    @classmethod
    def of(cls, header: LogHeader) -> "LowerBound":
        """Return the bound of a run's profile and lattice."""
        return cls(header.profile, header.lattice.degrees)

    def ttft(self, record: RequestRecord) -> Nanoseconds | None:
        """Return the least TTFT of a request [ns]; None where its content is unknown."""
        cached = record.oracle_cached_tokens
        if cached is None:
            return None
        length = record.input_tokens
        prefill = min(self._predict(degree, length - cached, cached) for degree in self._degrees)
        return prefill + self._profile.handoff(length) + self._decode_step_ns
