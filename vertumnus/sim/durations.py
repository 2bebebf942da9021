"""How long a simulated job takes: the profile's prediction times seeded noise.

Noise is keyed by (seed, purpose, request, attempt), so it depends on nothing but the request: the
order of events, the policy and the number of other requests leave it alone (D9).
"""

from hashlib import blake2b
from math import exp
from statistics import NormalDist

from vertumnus.domain.jobs import AdoptJob, StepJob
from vertumnus.domain.link import LinkConfig
from vertumnus.domain.prefill_time import PrefillTimeModel
from vertumnus.domain.profile import ModelProfile
from vertumnus.domain.units import Nanoseconds, RequestId, Tokens, to_ns

_QUANTILES = 4096


class Durations:
    """Times of the jobs of one run."""

    def __init__(
        self,
        profile: ModelProfile,
        seed: int,
        noise_sigma: float,
        *,
        switch_s: float = 0.02,
        link: LinkConfig | None = None,
        block_tokens: Tokens = 1,
    ) -> None:
        """Use *profile* with log-normal noise of *noise_sigma*; a rank adopts an epoch in *switch_s* [s]."""
        self._switch_ns = to_ns(switch_s)
        self._link = link or LinkConfig()
        self._block_bytes = profile.kv_bytes_per_token * block_tokens
        self._profile = profile
        self._prefill_time: PrefillTimeModel = profile.prefill_time()
        self._seed = seed
        self._factors = _log_normal_factors(noise_sigma)
        self._decode_step_ns = to_ns(profile.decode_step_s)

    def step(self, job: StepJob) -> Nanoseconds:
        """Return the prefill time of a step: E_C of Eq. 2 with its start-up cost once [ns]."""
        sizes = [(work.input_tokens - work.cached_tokens, work.cached_tokens) for work in job.works]
        shares = self._prefill_time.step_shares(job.worker.degree, sizes)
        return sum(
            round(share * self._noise(work.request_id, work.attempt))
            for share, work in zip(shares, job.works, strict=True)
        )

    def handoff(self, input_tokens: Tokens) -> Nanoseconds:
        """Return the KV hand-off time of a prompt [ns]."""
        return self._profile.handoff(input_tokens)

    def decode(self, output_tokens: Tokens) -> Nanoseconds:
        """Return the time of *output_tokens* decode steps [ns]."""
        return output_tokens * self._decode_step_ns

    def copy(self, blocks: int) -> tuple[int, Nanoseconds]:
        """Return the bytes of *blocks* and the time of their copy alone on its link [bytes, ns]."""
        payload = blocks * self._block_bytes
        return payload, self._link.transfer(payload)

    def adopt(self, job: AdoptJob) -> Nanoseconds:
        """Return the time from sending a control record to its rank's acknowledgement [ns]."""
        return self._switch_ns

    def _noise(self, request_id: RequestId, attempt: int) -> float:
        if len(self._factors) == 1:
            return self._factors[0]
        digest = blake2b(b"prefill %d %d %d" % (self._seed, request_id, attempt), digest_size=4).digest()
        return self._factors[int.from_bytes(digest) % _QUANTILES]


def _log_normal_factors(sigma: float) -> list[float]:
    """Return evenly likely factors of a log-normal with median 1; a draw only picks one."""
    if sigma == 0.0:
        return [1.0]
    quantile = NormalDist(sigma=sigma).inv_cdf
    # rounded, so that the last bit of a platform's libm does not show
    return [round(exp(quantile((place + 0.5) / _QUANTILES)), 9) for place in range(_QUANTILES)]
