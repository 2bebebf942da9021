"""A chapter with where it comes from: the runs, their kind, and what was left out."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from vertumnus.domain.wording import counted
from vertumnus.report.compare.members import Member
from vertumnus.report.paper.catalogue import Entry
from vertumnus.report.paper.chapter import Chapter, Claim, Grid, Runs
from vertumnus.report.paper.words import SHARES, difference_text, stated_text, value_text, verdict


class Section(NamedTuple):
    """One table or figure as it is written."""

    entry: Entry
    chapter: Chapter
    sources: Sequence[str]
    """One line for each experiment: executed or simulated, its runs and seeds, and how to make them."""
    left_out: Sequence[str]
    failure: str | None = None
    """Why the chapter could not be made of its runs."""

    @property
    def statements(self) -> Grid | None:
        """Return the table of what the paper states beside ours; None where its text states no number."""
        if not self.chapter.claims:
            return None
        rows = [
            (
                claim.what,
                stated_text(claim),
                value_text(claim.ours, claim.unit),
                difference_text(claim),
                verdict(claim),
                "" if claim.ours is None else claim.execution,
            )
            for claim in self.chapter.claims
        ]
        headings = ("statement", "paper", "ours (95 % over seeds)", "difference", "verdict", "runs")
        return Grid("", headings, rows)


def make_section(entry: Entry, runs: Runs, words: Sequence[str]) -> Section:
    """Return the section of *entry* from *runs*, which were made with the overrides *words*."""
    return _of_runs(entry, runs, words, entry.chapter(runs))


def failed_section(entry: Entry, runs: Runs, words: Sequence[str], error: Exception) -> Section:
    """Return a section that has no chapter and says that *error* is why."""
    reason = " ".join(str(error).split()) or type(error).__name__
    empty = Chapter(f"This chapter could not be made: {reason}", (), (), (), ())
    return _of_runs(entry, runs, words, empty)._replace(failure=reason)


def _of_runs(entry: Entry, runs: Runs, words: Sequence[str], chapter: Chapter) -> Section:
    of_entry = {
        name: runs.members[name] for name in (*entry.simulated, *entry.executed) if name in runs.members
    }
    only = [f"--only {axis}={','.join(values)}" for axis, values in entry.only.items()]
    typed = [*entry.words, *words, *only]
    return Section(
        entry,
        chapter,
        [line for name, members in of_entry.items() for line in _source(name, members.runs, typed)],
        [line for members in of_entry.values() for line in members.left_out],
    )


def glance(sections: Sequence[Section]) -> Grid:
    """Return the table of contents: how many statements of each, and how many ours agrees with."""
    rows = []
    for section in sections:
        claims = section.chapter.claims
        known = [claim for claim in claims if claim.ours is not None]
        agreed = sum(verdict(claim) in ("agrees", "close") for claim in known)
        kinds = " and ".join(sorted({line.partition(":")[0] for line in section.sources}))
        rows.append((section.entry.title, kinds, str(len(known)), str(agreed), _furthest(known)))
    return Grid(
        "",
        ("table or figure", "runs", "statements compared", "agree, or are close", "furthest off"),
        rows,
    )


def _furthest(claims: Sequence[Claim]) -> str:
    """Return the relative difference that is largest, of what differs by a factor."""
    off = [claim for claim in claims if claim.unit not in SHARES and claim.lies]
    if not off:
        return ""
    worst = max(off, key=lambda claim: abs(claim.lies) / abs(claim.paper[0] or 1.0))
    return f"{difference_text(worst)} ({worst.what})"


def _source(experiment: str, runs: Sequence[Member], words: Sequence[str]) -> Iterator[str]:
    command = " ".join(["vertumnus", f"+experiment={experiment}", "-m", *words])
    by_kind: Mapping[str, list[Member]] = {
        kind: [run for run in runs if run.execution == kind]
        for kind in sorted({run.execution for run in runs})
    }
    for kind, members in by_kind.items():
        seeds = ", ".join(str(seed) for seed in sorted({run.seed for run in members}))
        policies = ", ".join(sorted({str(run.row["policy"]) for run in members}))
        yield (
            f"{kind.upper()}: {counted(len(members), 'run')} of experiment {experiment}, seeds {seeds}, "
            f"policies {policies}{_company(members)}; {command}"
        )


def _company(runs: Sequence[Member]) -> str:
    """Return what other programs took of the machine while *runs* were executed, where that is known."""
    shares = [share for run in runs if (share := run.row["others_cpu_share"]) is not None]
    if not shares:
        return ""
    return (
        f", beside other programs that used {100 * min(shares):.0f} to {100 * max(shares):.0f} % of the cores"
    )
