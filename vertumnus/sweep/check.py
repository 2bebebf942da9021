"""What is wrong with the jobs of a sweep, found before the first of them starts."""

from collections.abc import Iterator, Mapping, Sequence

from vertumnus.config import RunConfig, plain_config
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.wording import counted
from vertumnus.live.plan import require_packages
from vertumnus.records.run_row import canonical_json
from vertumnus.run.stream import Stream, read_stream, require_servable
from vertumnus.sweep.job import Job


def sweep_problems(jobs: Mapping[int, Job]) -> Iterator[tuple[int, str]]:
    """Yield each problem of *jobs* that can be known before they run, with the number of a job.

    A workload is looked at with the first seed that it comes with: another one costs as much again.
    """
    yield from list(_folders(jobs)) or _twins(jobs)
    streams = _Streams()
    looked_at = set()
    for number, job in jobs.items():
        but_for_seed = canonical_json({**plain_config(job.config), "seed": 0})
        if but_for_seed in looked_at:
            continue
        looked_at.add(but_for_seed)
        for problem in _unstartable(job, streams):
            yield number, problem


def told_once(found: Sequence[tuple[str, str]], jobs: int) -> list[str]:
    """Return the problems of *found*, (job, problem) pairs, each once.

    What not all *jobs* have is told with the first job that has it.
    """
    holders: dict[str, list[str]] = {}
    for job, problem in found:
        holders.setdefault(problem, []).append(job)
    told = []
    for problem, having in holders.items():
        more = f" and {counted(len(having) - 1, 'more job')}" if len(having) > 1 else ""
        told.append(problem if len(having) == jobs else f"{having[0]}{more}: {problem}")
    return told


class _Streams:
    """The workloads of a sweep, each read once."""

    def __init__(self) -> None:
        self._read: dict[str, Stream | ConfigError] = {}

    def of(self, config: RunConfig) -> Stream:
        """Return the workload of *config* as some seed makes it; raises ConfigError."""
        plain = plain_config(config)
        key = canonical_json(plain["workload"])
        if key not in self._read:
            try:
                self._read[key] = read_stream(config)
            except ConfigError as error:
                self._read[key] = error
        found = self._read[key]
        if isinstance(found, ConfigError):
            raise found
        return found


def _unstartable(job: Job, streams: _Streams) -> tuple[str, ...]:
    try:
        require_servable(job.config, streams.of(job.config))
        if job.is_live:
            require_packages()
    except ConfigError as error:
        return tuple(error.problems)
    return ()


def _folders(jobs: Mapping[int, Job]) -> Iterator[tuple[int, str]]:
    first = next(iter(jobs.values())).config.runs_dir
    for number, job in jobs.items():
        if job.config.runs_dir != first:
            yield number, f"runs_dir: found {job.config.runs_dir} and {first}, a sweep has one folder"


def _twins(jobs: Mapping[int, Job]) -> Iterator[tuple[int, str]]:
    seen: dict[str, int] = {}
    for number, job in jobs.items():
        twin = seen.setdefault(job.config_hash, number)
        if twin != number:
            yield number, f"has the same configuration as job {twin}"
