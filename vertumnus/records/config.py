"""What a run keeps beside its log, and which part of it counts."""

from msgspec import Struct, structs

from vertumnus.domain.units import Nanoseconds, RequestId, Tokens, to_ns


class RecordsConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """How a run is measured; part of the log's header, so that a killed run can be measured too."""

    warmup_share: float = 0.15
    """Leading share of the requests, by arrival, that metrics leave out (sec. 8 of the evaluation)."""
    worker_sample_s: float = 1.0
    """Distance of the samples of the workers table on the run's clock [s]."""
    decision_share: float = 0.0
    """Share of the requests whose candidates go to the decisions table."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.warmup_share < 1.0:
            raise ValueError(f"warmup_share must be in [0, 1), got {self.warmup_share}")
        if not 0.0 <= self.decision_share <= 1.0:
            raise ValueError(f"decision_share must be in [0, 1], got {self.decision_share}")
        if not 1e-3 <= self.worker_sample_s <= 1e6:
            raise ValueError(f"worker_sample_s must be in [0.001, 1000000], got {self.worker_sample_s}")

    @property
    def worker_sample_ns(self) -> Nanoseconds:
        """Distance of the workers' samples, at least 1 [ns]."""
        return max(1, to_ns(self.worker_sample_s))

    def warmup_requests(self, requests: int) -> int:
        """Return how many of *requests* arrivals are warm-up."""
        return int(self.warmup_share * requests)

    def samples(self, request_id: RequestId) -> bool:
        """Return whether *request_id*'s candidates are kept: the same requests in every run."""
        # Knuth's multiplicative hash spreads dense ids evenly over 32 bits
        return request_id * 2_654_435_761 % 2**32 < self.decision_share * 2**32


class Measurement(RecordsConfig, frozen=True, forbid_unknown_fields=True):
    """The records' settings with the length buckets that the run's targets make."""

    length_bounds: tuple[Tokens, ...] = ()
    """Input lengths at which a new length bucket starts, ascending, in tokens as the run sees them."""

    @classmethod
    def of(cls, config: RecordsConfig, length_bounds: tuple[Tokens, ...]) -> "Measurement":
        """Return *config* with these buckets."""
        return cls(**structs.asdict(config), length_bounds=length_bounds)

    def length_bucket(self, input_tokens: Tokens) -> str:
        """Return the name of the bucket that a prompt of *input_tokens* falls in."""
        return length_bucket(input_tokens, self.length_bounds)


def length_bucket(input_tokens: Tokens, bounds: tuple[Tokens, ...]) -> str:
    """Return "<8K", "8K-32K", ">=32K" and the like for *input_tokens* between ascending *bounds*."""
    below = [bound for bound in bounds if bound <= input_tokens]
    above = bounds[len(below) :]
    if not bounds:
        return "all"
    if not below:
        return f"<{_short(above[0])}"
    if not above:
        return f">={_short(below[-1])}"
    return f"{_short(below[-1])}-{_short(above[0])}"


def _short(tokens: Tokens) -> str:
    return f"{tokens // 1024}K" if tokens % 1024 == 0 else str(tokens)
