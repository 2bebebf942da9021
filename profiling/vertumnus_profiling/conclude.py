"""What the samples of a sweep say: times by clock, fits, and the profile that they make."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from vertumnus.domain.errors import ConfigError
from vertumnus.domain.prefill_time import Coefficients
from vertumnus.domain.profile import Form, ModelProfile
from vertumnus.domain.wording import counted
from vertumnus.live.bench import TailTiming
from vertumnus.live.fit import TimedPrefill, fit_prefill_time
from vertumnus.live.hardware import hardware_of, shared_cores
from vertumnus.live.plan import LivePlan
from vertumnus.live.tail import Tail, fastest_tail, tail_through
from vertumnus.records.provenance import git_revision
from vertumnus_profiling.forms import FittedForms, fit_forms
from vertumnus_profiling.grid import SweepPoint
from vertumnus_profiling.samples import Header, Sample, StepSample, TailSample
from vertumnus_profiling.schedule import MeasuredPoint, measured_points

Clock: TypeAlias = Literal["wall", "cpu"]


class Measured(NamedTuple):
    """A finished sweep."""

    points: list[TimedPrefill]
    """By the clock of their degree."""
    clocks: dict[int, Clock]
    forms: FittedForms
    cpu: Coefficients
    """CPU time of one rank, shared by all degrees."""
    tail: Tail
    samples: int
    disturbed: int
    """Points without a single undisturbed sample."""

    @property
    def summary(self) -> str:
        """How much was measured, in one line."""
        names = {"wall": "wall time", "cpu": "CPU time"}
        clocks = ", ".join(f"CP{degree} {names[clock]}" for degree, clock in self.clocks.items())
        return (
            f"{counted(len(self.points), 'point')} from {counted(self.samples, 'sample')}, "
            f"{counted(self.disturbed, 'point')} never undisturbed by others; {clocks}"
        )


def conclude(
    wanted: Sequence[SweepPoint],
    samples: Sequence[Sample],
    cores: int | None,
    clock: Literal["auto", "cpu"] = "auto",
) -> Measured:
    """Return the times and fits of the *wanted* points, all of which have samples."""
    steps = [sample for sample in samples if isinstance(sample, StepSample)]
    found = measured_points(wanted, steps)
    clocks = {degree: clock_of(degree, cores, clock) for degree in sorted({p.degree for p in wanted})}
    points = [_timed(each, clocks[each.point.degree]) for each in found]
    return Measured(
        points=points,
        clocks=clocks,
        forms=fit_forms(points),
        cpu=fit_prefill_time([_timed(each, "cpu") for each in found]).coefficients,
        tail=_tail([sample for sample in samples if isinstance(sample, TailSample)]),
        samples=len(steps),
        disturbed=sum(not each.is_quiet for each in found),
    )


def clock_of(degree: int, cores: int | None, clock: Literal["auto", "cpu"]) -> Clock:
    """Return what the times of *degree* are read from: ranks beyond the cores wait for one another."""
    if cores is None:
        if clock == "cpu":
            raise ConfigError("--clock: found cpu, but the ranks compute on devices; allowed: auto")
        return "wall"
    return "cpu" if clock == "cpu" or degree > cores else "wall"


def measured_profile(
    measured: Measured, plan: LivePlan, header: Header, form: Form, notes: Sequence[str]
) -> ModelProfile:
    """Return the profile of *measured*, capacity aside; *notes* end its provenance."""
    forms = measured.forms
    return ModelProfile(
        model=plan.model.name,
        dtype=plan.model.dtype,
        block_tokens=plan.block_tokens,
        kv_bytes_per_token=plan.model.kv_bytes_per_token,
        hardware=hardware_of(plan),
        cores=shared_cores(plan),
        measured_at=header.started_at,
        provenance="; ".join([_origin(header), measured.summary, *notes]),
        degrees=tuple(forms.per_degree),
        form=form,
        prefill=forms.log2,
        published=forms.published,
        per_degree=forms.per_degree,
        clocks=dict(measured.clocks),
        errors=forms.errors,
        cpu=measured.cpu if shared_cores(plan) else None,
        **measured.tail._asdict(),
    )


def _origin(header: Header) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in header.settings.versions.items())
    revision = git_revision()
    return f"measured by vertumnus profile with {versions}" + (f", git {revision[:12]}" if revision else "")


def _timed(measured: MeasuredPoint, clock: Clock) -> TimedPrefill:
    return TimedPrefill(*measured.point, measured.wall_s if clock == "wall" else measured.cpu_per_rank_s)


def _tail(samples: Sequence[TailSample]) -> Tail:
    by_length: Mapping[int, list[TailTiming]] = {sample.input_tokens: [] for sample in samples}
    for sample in samples:
        timing = TailTiming(sample.input_tokens, sample.handoff_s, sample.whole_s)
        by_length[sample.input_tokens].append(timing)
    fastest = [fastest_tail(by_length[length]) for length in sorted(by_length)]
    return tail_through(fastest[0], fastest[-1])
