"""The words of mistakes on the command line: flag, found, allowed, in the form of all messages."""

from argparse import ArgumentTypeError
from pathlib import Path

import pytest

from vertumnus.commandline.parser import Parser, add_forms, existing_folder, folder, positive, run_parser
from vertumnus.domain.errors import ConfigError


def a_parser() -> Parser:
    """Return a parser with one of each kind of flag."""
    parser = run_parser("try", "A verb.")
    parser.add_argument("kind", choices=["split", "merge"])
    parser.add_argument("--jobs", type=positive)
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--share", type=float)
    parser.add_argument("--quick", action="store_true")
    add_forms(parser, ("json", "csv"))
    return parser


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["slit"], "kind: found slit, must be one of split, merge; did you mean split?"),
        (["drain"], "kind: found drain, must be one of split, merge"),
        ([""], "kind: found '', must be one of split, merge"),
        ([], "kind: required, but not given; see vertumnus try --help"),
        (["split", "--jobs", "0"], "--jobs: found 0, must be a whole number of at least 1"),
        (["split", "--jobs", ""], "--jobs: found '', must be a whole number of at least 1"),
        (["split", "--jobs"], "--jobs: found no value, needs one; see vertumnus try --help"),
        (["split", "--repeats", "x"], "--repeats: found x, must be a whole number"),
        (["split", "--share", "a b"], "--share: found a b, must be a number"),
        (["split", "--json", "--csv"], "--csv: cannot stand beside --json; leave one out"),
        (["split", "--quick=3"], "--quick: found 3, takes no value"),
        (["split", "--quik"], "--quik: no such flag; did you mean --quick?"),
        (["split", "--zzz"], "--zzz: no such flag; see vertumnus try --help"),
        (["split", "more"], "more: one word too many; see vertumnus try --help"),
        (["split", "--qui"], "--qui: no such flag; did you mean --quick?"),
        (["split", "--runs-dir", "nowhere"], "--runs-dir: found nowhere, which is no folder"),
    ],
)
def test_a_mistake_names_flag_found_and_allowed(words: list[str], said: str) -> None:
    """One line each, without a word of argparse; a flag is spelled in full."""
    with pytest.raises(ConfigError) as raised:
        a_parser().parse_args(words)
    assert raised.value.problems == (said,)


def test_every_word_too_many_is_told() -> None:
    """Each in a line of its own."""
    with pytest.raises(ConfigError) as raised:
        a_parser().parse_args(["split", "--one", "two"])
    assert [problem.partition(":")[0] for problem in raised.value.problems] == ["--one", "two"]


def test_folders_that_may_and_must_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Output goes to a folder that can be made, input comes from one that is there; a file is neither."""
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    assert folder("new/one") == Path("new/one")
    assert existing_folder(str(tmp_path)) == tmp_path
    for check, word, said in (
        (folder, "file", "found file, which is a file; must be a folder"),
        (folder, "file/below", "found file/below, but file is a file; must be a folder"),
        (folder, "", "found , must name a folder"),
        (existing_folder, "file", "found file, which is no folder"),
        (existing_folder, "", "found , which is no folder"),
    ):
        with pytest.raises(ArgumentTypeError, match=said):
            check(word)
