"""From options to a profile: sweep, fit, capacity, file, figures."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

from msgspec import structs
from rich.console import Console

import vertumnus
from vertumnus.domain.extras import installing
from vertumnus.domain.profile import ModelProfile
from vertumnus.domain.units import Tokens
from vertumnus.domain.wording import counted
from vertumnus.live.hardware import hardware_of, shared_cores
from vertumnus.live.plan import LivePlan
from vertumnus.records.provenance import library_versions
from vertumnus.run.progress import Progress
from vertumnus.run.simulated import rare_collections
from vertumnus_profiling.conclude import Measured, conclude, measured_profile
from vertumnus_profiling.forms import FOLDS, RefusedFit, require_good
from vertumnus_profiling.grid import Size, points_of, sizes_of
from vertumnus_profiling.kappa import Kappas, Pools, executed_kappas, pools_of, simulated_kappas
from vertumnus_profiling.options import Options
from vertumnus_profiling.profile_file import profile_name, write_profile
from vertumnus_profiling.samples import SampleFile, StepSample, SweepSettings, TailSample
from vertumnus_profiling.schedule import Schedule
from vertumnus_profiling.show import show_break_even, show_errors, show_kappas
from vertumnus_profiling.sweep import (
    YARDSTICK,
    missing_tails,
    plan_for,
    stopwatch,
    sweep_steps,
    sweep_tails,
)


def make_profile(options: Options, console: Console) -> Path:
    """Measure, fit and write what *options* ask for; return the profile's file.

    Narration goes to *console*, results to stdout. Raises ConfigError before anything is measured,
    RefusedFit for a fit that is too far off, VertumnusError when ranks fail; samples are kept then.
    """
    sizes = sizes_of(options.points, options.model, options.config.workload.scaled_block_tokens)
    longest = _longest(sizes)
    plans = {
        degree: plan_for(options.config, options.model, options.live, degree, longest)
        for degree in options.config.cluster.degrees
    }
    pools = _pools(options)
    first = next(iter(plans.values()))
    name = profile_name(options.model.name, hardware_of(first))
    with closing(SampleFile(options.out / name, _settings(options, first), _today())) as file:
        _sweep(options, plans, sizes, file, console)
        measured = conclude(
            points_of(sizes, tuple(plans)), file.samples, shared_cores(first), clock=options.clock
        )
        show_errors(measured.forms.errors, options.form)
        _require_good(options, measured, file)
        show_break_even(measured.forms.model(options.form))
        path = _write(options, measured, pools, first, file, console)
        file.finish()
    _draw(options, measured, path, console)
    return path


def _pools(options: Options) -> Pools:
    """Return what kappa will be looked for in, so that its problems are told before the sweep."""
    return {} if options.capacity is None else pools_of(options.config)


def _settings(options: Options, plan: LivePlan) -> SweepSettings:
    found = library_versions()
    return SweepSettings(
        model=options.model,
        hardware=hardware_of(plan),
        device=plan.device,
        block_tokens=plan.block_tokens,
        weights=options.live.weights,
        versions={"vertumnus": vertumnus.__version__, "python": found["python"], "torch": found["torch"]},
    )


def _sweep(
    options: Options,
    plans: Mapping[int, LivePlan],
    sizes: Sequence[Size],
    file: SampleFile,
    console: Console,
) -> None:
    longest = _longest(sizes)
    if file.samples:
        told = f"continuing {file.path}: {counted(len(file.samples), 'sample')} of {file.header.started_at}"
        console.print(told, soft_wrap=True, markup=False)
    for degree, plan in plans.items():
        schedule = Schedule(points_of(sizes, [degree]), options.repeats, _steps(file))
        tails = []
        if degree == min(plans):
            tails = missing_tails(_tails(file), sizes, options.repeats)
        if schedule.done == schedule.total and not tails:
            continue
        console.print(f"starting {degree} + 1 ranks on {plan.device}, model {plan.model.name} ...")
        with (
            stopwatch(plan, longest) as watch,
            Progress(console, f"CP{degree}", schedule.total - schedule.done, "samples") as progress,
        ):
            sweep_steps(watch, schedule, file, progress.show)
            sweep_tails(watch, tails, file)


def _longest(sizes: Sequence[Size]) -> Tokens:
    return max(size.uncached + size.cached for size in (*sizes, YARDSTICK))


def _steps(file: SampleFile) -> list[StepSample]:
    return [sample for sample in file.samples if isinstance(sample, StepSample)]


def _tails(file: SampleFile) -> list[TailSample]:
    return [sample for sample in file.samples if isinstance(sample, TailSample)]


def _require_good(options: Options, measured: Measured, file: SampleFile) -> None:
    try:
        require_good(measured.forms.errors, options.form)
    except RefusedFit as refused:
        if not options.force:
            raise RefusedFit(
                f"{refused}; {measured.disturbed} of {counted(len(measured.points), 'point')} were never "
                "undisturbed. Use it all the same with --force, try --clock cpu, or measure anew when others "
                f"leave the cores alone: delete {file.path}"
            ) from refused


def _write(
    options: Options,
    measured: Measured,
    pools: Pools,
    plan: LivePlan,
    file: SampleFile,
    console: Console,
) -> Path:
    profile = measured_profile(measured, plan, file.header, options.form, _notes(options))
    if pools:
        profile = _with_kappa(options, profile, pools, console)
    path = options.out / f"{file.path.parent.name}.yaml"
    write_profile(path, profile)
    print(f"profile {path}")
    return path


def _with_kappa(options: Options, profile: ModelProfile, pools: Pools, console: Console) -> ModelProfile:
    kappas = _kappas(options, profile, pools, console)
    show_kappas(kappas)
    how = "executed" if options.capacity == "live" else "simulated"
    return structs.replace(
        profile,
        capacity=kappas.table() or None,
        capacity_provenance=kappas.provenance(options.config, how),
    )


def _kappas(options: Options, profile: ModelProfile, pools: Pools, console: Console) -> Kappas:
    with rare_collections(), Progress(console, "kappa", len(pools), "pools") as progress:
        found = simulated_kappas(pools, profile, progress.show)
    if options.capacity == "live":
        return executed_kappas(options.config, profile, options.live, found, console)
    return found


def _notes(options: Options) -> list[str]:
    """Return what to add to the provenance: how the fit was judged."""
    notes = [f"{FOLDS} folds held out"]
    if options.force:
        notes.append("written with --force, whatever its errors")
    if options.clock == "cpu":
        notes.append("CPU time by choice (--clock cpu)")
    return notes


def _draw(options: Options, measured: Measured, path: Path, console: Console) -> None:
    if find_spec("matplotlib") is None:
        console.print(
            f"figures: matplotlib is not installed ({installing('figures')}), none drawn",
            soft_wrap=True,
            markup=False,
        )
        return
    from vertumnus_profiling.figures import draw_accuracy, draw_speedup

    folder, forms = path.with_suffix(""), measured.forms
    title = f"{options.model.name}: {measured.summary}"
    if len(forms.per_degree) > 1:
        model = forms.model(options.form)
        _tell(draw_speedup(folder / "speedup", title, measured.points, model))
    _tell(draw_accuracy(folder / "accuracy", title, measured.points, forms, options.form))


def _tell(files: Sequence[Path]) -> None:
    for file in files:
        print(f"figure  {file}")


def _today() -> str:
    return datetime.now(UTC).date().isoformat()
