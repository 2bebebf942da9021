"""How a program ends: its exit code, and what stderr says."""

import pytest

from vertumnus.commandline.exit_codes import BAD_INPUT, FAILED, INTERRUPTED, INVALID, exit_code_of
from vertumnus.domain.errors import ConfigError, VertumnusError


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (ConfigError("key: found 1"), BAD_INPUT, "error: key: found 1\n"),
        (ConfigError("a", "b"), BAD_INPUT, "error: 2 problems\n  - a\n  - b\n"),
        (VertumnusError("rank 3 is gone"), FAILED, "error: rank 3 is gone\n"),
        (
            PermissionError(13, "Permission denied", "t.jsonl"),
            BAD_INPUT,
            "error: t.jsonl: Permission denied\n",
        ),
        (
            OSError(28, "No space left on device", "runs/x"),
            FAILED,
            "error: runs/x: No space left on device\n",
        ),
        (KeyboardInterrupt(), INTERRUPTED, "interrupted; go on\n"),
    ],
)
def test_what_ends_a_program_is_its_code_and_a_message(error, code, says, capsys) -> None:
    """No traceback: the message is on stderr, the code is the kind's."""

    def program(_words) -> int:
        raise error

    assert exit_code_of(program, [], "interrupted; go on") == code
    assert capsys.readouterr() == ("", says)


def test_a_program_has_its_words_and_its_own_code(monkeypatch) -> None:
    """Given words, or those of the command line; a fault of the code is no exit code."""
    monkeypatch.setattr("sys.argv", ["vertumnus", "one", "two"])
    for argv, words in (((), []), (["x"], ["x"]), (None, ["one", "two"])):
        assert exit_code_of(lambda told, words=words: INVALID if list(told) == words else 0, argv) == INVALID
    with pytest.raises(ZeroDivisionError):
        exit_code_of(lambda _words: 1 // 0, ())


def test_an_error_of_no_file_is_a_fault_of_the_code() -> None:
    """A socket that is gone, say, has no name that a user could mend."""

    def program(_words) -> int:
        raise OSError(9, "Bad file descriptor")

    with pytest.raises(OSError, match="Bad file descriptor"):
        exit_code_of(program, ())
