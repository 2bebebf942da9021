"""The command ``vertumnus``: a verb, or Hydra overrides that make a run (composition root).

Exit codes: 0 ok, 1 run failed, 2 bad input, 3 finished but INVALID, 130 interrupted.
"""

import sys
from collections.abc import Callable, Mapping, Sequence

from vertumnus import __version__

Verb = Callable[[Sequence[str]], int]


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the command line *argv* (sys.argv without the program) says; return the exit code."""
    try:
        # here, as all that takes a while: Ctrl-C during an import is one as any other
        from vertumnus.commandline.exit_codes import exit_code_of

        return exit_code_of(_dispatch, argv)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130  # INTERRUPTED, of what is not imported yet


def _dispatch(words: Sequence[str]) -> int:
    from vertumnus.commandline.exit_codes import BAD_INPUT, OK
    from vertumnus.commandline.flags import HELP

    if not words:
        print(HELP, end="", file=sys.stderr)
        return BAD_INPUT
    if words[0] in ("-h", "--help", "help"):
        print(HELP, end="")
        return OK
    if words[0] == "--version":
        print(f"vertumnus {__version__}")
        return OK
    if _is_verb_like(words[0]):
        return _verb(words[0])(words[1:])
    return _run(words)


def _is_verb_like(word: str) -> bool:
    """Overrides contain ``=`` or start with ``+ - ~``, so a bare word can only be meant as a verb."""
    return "=" not in word and not word.startswith(("+", "-", "~"))


def _verb(word: str) -> Verb:
    if word not in VERBS:
        from vertumnus.commandline.listing import unknown_verb
        from vertumnus.domain.errors import ConfigError

        raise ConfigError(unknown_verb(word, VERBS))
    return VERBS[word]


# Each imports what it needs when it is called: help and errors answer at once, and nothing of a
# simulated run or a report ever loads torch.


def _run(words: Sequence[str]) -> int:
    from vertumnus.commandline.flags import read_flags
    from vertumnus.commandline.jobs import run_command

    return run_command(read_flags(words))


def _ls(words: Sequence[str]) -> int:
    from vertumnus.commandline.listing import list_configs

    return list_configs(words)


def _report(words: Sequence[str]) -> int:
    from vertumnus.commandline.results import report

    return report(words)


def _sql(words: Sequence[str]) -> int:
    from vertumnus.commandline.results import sql

    return sql(words)


def _runs(words: Sequence[str]) -> int:
    from vertumnus.commandline.results import runs

    return runs(words)


def _console(words: Sequence[str]) -> int:
    from vertumnus.commandline.console import console

    return console(words)


def _preview(words: Sequence[str]) -> int:
    from vertumnus.commandline.previewing import preview

    return preview(words)


def _explain(words: Sequence[str]) -> int:
    from vertumnus.commandline.explaining import explain

    return explain(words)


def _audit(words: Sequence[str]) -> int:
    from vertumnus.commandline.auditing import audit

    return audit(words)


def _rerun(words: Sequence[str]) -> int:
    from vertumnus.commandline.rerunning import rerun

    return rerun(words)


def _salvage(words: Sequence[str]) -> int:
    from vertumnus.commandline.auditing import salvage

    return salvage(words)


def _compare(words: Sequence[str]) -> int:
    from vertumnus.commandline.comparing import comparing

    return comparing(words)


def _profile(words: Sequence[str]) -> int:
    from vertumnus.commandline.applications import become

    become("vertumnus_profiling", words)


def _tune(words: Sequence[str]) -> int:
    from vertumnus.commandline.applications import become

    become("vertumnus_profiling.tune", words)


def _figures(words: Sequence[str]) -> int:
    from vertumnus.commandline.figures import figures

    return figures(words)


def _size(words: Sequence[str]) -> int:
    from vertumnus.commandline.applications import become

    become("vertumnus_profiling.size", words)


def _trace(words: Sequence[str]) -> int:
    from vertumnus.commandline.traces import trace

    return trace(words)


VERBS: Mapping[str, Verb] = {
    "ls": _ls,
    "profile": _profile,
    "tune": _tune,
    "report": _report,
    "sql": _sql,
    "runs": _runs,
    "compare": _compare,
    "console": _console,
    "trace": _trace,
    "size": _size,
    "figures": _figures,
    "preview": _preview,
    "explain": _explain,
    "audit": _audit,
    "rerun": _rerun,
    "salvage": _salvage,
}
