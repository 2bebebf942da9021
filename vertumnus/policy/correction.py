"""Online correction of the prefill-time model, for each degree by itself.

The ratio of observed to predicted step times is kept over the last steps of a degree, and of each bucket
of sizes at it. A median that differs from the model by more than chance corrects every prediction from
then on: waits, service times, the GPU-time term, demand. With no drift it leaves them alone, so that
noise moves no decision.
"""

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from math import comb
from typing import TypeVar

from msgspec import Struct

from vertumnus.domain.orders import AnyOrder, NoteDrift
from vertumnus.domain.prefill_time import PrefillTimeModel
from vertumnus.domain.units import JobId, Nanoseconds, Tokens

Key = TypeVar("Key")

CHANCE = 1 / 16
"""A median counts as different when as many ratios on one side of the model are less likely than this:
the share at which five of five do."""


class CorrectionConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How observed prefill times correct the profile's predictions."""

    enabled: bool = True
    """Whether they do; switching it off forgets what was observed."""
    window: int = 32
    """Steps whose ratios are kept, at a degree and at each of its buckets."""
    min_samples: int = 5
    """Ratios that a median needs."""
    lowest: float = 0.5
    """The least factor that is applied, in (0, 1]."""
    highest: float = 2.0
    """The largest factor that is applied, >= 1."""
    alarm_below: float = 0.8
    """An alarm is raised while the median of a degree is below this, ..."""
    alarm_above: float = 1.25
    """... or above this."""

    def __post_init__(self) -> None:
        if not 1 <= self.min_samples <= self.window <= 256:
            found = f"min_samples {self.min_samples}, window {self.window}"
            raise ValueError(f"min_samples and window must be 1 <= min_samples <= window <= 256, got {found}")
        if not 0.0 < self.lowest <= 1.0 <= self.highest < float("inf"):
            found = f"lowest {self.lowest}, highest {self.highest}"
            raise ValueError(f"lowest and highest must be 0 < lowest <= 1 <= highest, got {found}")
        if not 0.0 < self.alarm_below < 1.0 < self.alarm_above < float("inf"):
            found = f"alarm_below {self.alarm_below}, alarm_above {self.alarm_above}"
            raise ValueError(f"alarms must be 0 < alarm_below < 1 < alarm_above, got {found}")


class Ratios:
    """Ratios of observed to predicted times, ascending."""

    def __init__(self) -> None:
        self._ascending: list[float] = []

    def __len__(self) -> int:
        return len(self._ascending)

    @property
    def median(self) -> float:
        """The middle one, or the mean of the middle two; there is at least one."""
        ascending, half = self._ascending, len(self._ascending) // 2
        return ascending[half] if len(ascending) % 2 else (ascending[half - 1] + ascending[half]) / 2

    def add(self, ratio: float) -> None:
        """Take one more."""
        insort(self._ascending, ratio)

    def remove(self, ratio: float) -> None:
        """Take one out that is there."""
        del self._ascending[bisect_left(self._ascending, ratio)]

    def minority(self, factor: float) -> int:
        """Return how many lie on that side of *factor* where fewer do."""
        below, above = bisect_left(self._ascending, factor), bisect_right(self._ascending, factor)
        return min(below, len(self._ascending) - above)


class DegreeWindow:
    """The last steps of one degree, all together and by bucket, which knows none that are older."""

    def __init__(self, steps: int) -> None:
        self._recent: deque[tuple[float, int | None]] = deque(maxlen=steps)
        self.all = Ratios()
        self.buckets: dict[int, Ratios] = {}

    def add(self, ratio: float, bucket: int | None) -> set[int]:
        """Take a step in place of the oldest; return the buckets that changed."""
        changed = set()
        if len(self._recent) == self._recent.maxlen:
            oldest, left = self._recent[0]
            self.all.remove(oldest)
            if left is not None:
                self.buckets[left].remove(oldest)
                changed.add(left)
        self._recent.append((ratio, bucket))
        self.all.add(ratio)
        if bucket is not None:
            self.buckets.setdefault(bucket, Ratios()).add(ratio)
            changed.add(bucket)
        return changed


class Correction:
    """What the steps of each degree say of the model, and the factors that follow."""

    def __init__(self, config: CorrectionConfig, model: PrefillTimeModel) -> None:
        self._model = model
        self.retune(config)

    @property
    def config(self) -> CorrectionConfig:
        """The parameters in force."""
        return self._config

    def retune(self, config: CorrectionConfig) -> None:
        """Take *config* and forget what was observed."""
        self._config = config
        self._fewest = [_fewest(samples) for samples in range(config.window + 1)]
        self._steps: dict[JobId, tuple[int, Sequence[tuple[Tokens, Tokens]], Nanoseconds]] = {}
        self._windows: dict[int, DegreeWindow] = {}
        self._factors: dict[int, float] = {}
        self._bucket_factors: dict[tuple[int, int], float] = {}
        self._alarms: set[int] = set()

    @property
    def corrects(self) -> bool:
        """Whether any prediction is multiplied."""
        return bool(self._factors or self._bucket_factors)

    def factor(self, degree: int, uncached: Tokens, cached: Tokens) -> float:
        """Return what to multiply a prediction by: the bucket's factor, else the degree's, else 1."""
        known = self._bucket_factors.get((degree, _bucket(uncached, cached)))
        return self._factors.get(degree, 1.0) if known is None else known

    def begin(self, step_id: JobId, degree: int, sizes: Sequence[tuple[Tokens, Tokens]]) -> None:
        """Note a step of prefills of *sizes* (R, P), and what the model says of it uncorrected."""
        if self._config.enabled:
            predicted = sum(self._model.step_shares(degree, sizes))
            self._steps[step_id] = (degree, sizes, predicted)

    def drop(self, step_id: JobId) -> None:
        """Forget a step that did not finish."""
        self._steps.pop(step_id, None)

    def end(self, step_id: JobId, took_ns: Nanoseconds) -> list[AnyOrder]:
        """Learn from a step that took *took_ns*; return the alarm that is raised or cleared by it."""
        step = self._steps.pop(step_id, None)
        if step is None or took_ns <= 0:
            return []
        degree, sizes, predicted = step
        ratio = took_ns / max(1, predicted)
        window = self._windows.setdefault(degree, DegreeWindow(self._config.window))
        bucket = _bucket(*sizes[0]) if len(sizes) == 1 else None  # a batch says nothing of one size
        self._weigh(degree, window, window.add(ratio, bucket))
        return self._alarm(degree, window.all)

    def _weigh(self, degree: int, window: DegreeWindow, changed: Iterable[int]) -> None:
        """Work out anew the factor of *degree*, and of the buckets that it moves or that have *changed*."""
        before, factor = self._factors.get(degree), self._significant(window.all, 1.0)
        if factor != before:
            _put(self._factors, degree, factor)
            changed = window.buckets
        for bucket in changed:
            own = self._significant(window.buckets[bucket], factor or 1.0)
            _put(self._bucket_factors, (degree, bucket), own)

    def _significant(self, ratios: Ratios, reference: float) -> float | None:
        """Return the factor that *ratios* ask for; None when *reference* explains them as well."""
        config, samples = self._config, len(ratios)
        if samples < config.min_samples or ratios.minority(reference) > self._fewest[samples]:
            return None
        factor = min(max(ratios.median, config.lowest), config.highest)
        return None if factor == reference else factor

    def _alarm(self, degree: int, ratios: Ratios) -> list[AnyOrder]:
        config = self._config
        if len(ratios) < config.min_samples:
            return []
        median = ratios.median
        is_off = not config.alarm_below <= median <= config.alarm_above
        if is_off == (degree in self._alarms):
            return []
        self._alarms ^= {degree}
        return [NoteDrift(degree, median, len(ratios), is_off)]


class CorrectedPrefillTime(PrefillTimeModel):
    """The model times the factors of a correction, wherever the model is used."""

    def __init__(self, model: PrefillTimeModel, correction: Correction) -> None:
        super().__init__(model.by_degree)
        self._model = model
        self._correction = correction

    def predict(self, degree: int, uncached: Tokens, cached: Tokens) -> Nanoseconds:
        """Return E_C(R, P) as observed times correct it [ns]."""
        predicted = self._model.predict(degree, uncached, cached)
        if not self._correction.corrects:
            return predicted
        factor = self._correction.factor(degree, uncached, cached)
        return predicted if factor == 1.0 else int(predicted * factor)

    def predictor(self) -> Callable[[int, Tokens, Tokens], Nanoseconds]:
        """Return what `predict` is at this instant: the model's own while nothing corrects it."""
        return self.predict if self._correction.corrects else self._model.predict

    def step_shares(self, degree: int, items: Sequence[tuple[Tokens, Tokens]]) -> list[Nanoseconds]:
        """Return each (R, P) item's share of one step's time, each corrected by its own size [ns]."""
        shares = self._model.step_shares(degree, items)
        factor = self._correction.factor
        return [int(share * factor(degree, *size)) for share, size in zip(shares, items, strict=True)]


def _bucket(uncached: Tokens, cached: Tokens) -> int:
    """Return the bucket of a size: R by powers of four, reuse as none, less than R, or more."""
    reuse = 0 if cached == 0 else 1 if cached < uncached else 2
    return (uncached.bit_length() >> 1) * 3 + reuse


def _put(factors: dict[Key, float], key: Key, factor: float | None) -> None:
    if factor is None:
        factors.pop(key, None)
    else:
        factors[key] = factor


def _fewest(samples: int) -> int:
    """Return how few of *samples* on one side are too few for chance; -1 where none are."""
    fewest, ways = -1, 2
    while ways <= CHANCE * 2**samples:
        fewest += 1
        ways += 2 * comb(samples, fewest + 1)
    return fewest
