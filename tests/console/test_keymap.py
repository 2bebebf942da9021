"""A user's own keys: what is taken, what is refused with the line to mend."""

from pathlib import Path

import pytest

from vertumnus.domain.errors import ConfigError
from vertumnus_console.keymap import key_names, keymap_path, read_keymap
from vertumnus_console.keys import KEYS


def test_without_a_file_keys_are_the_usual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file is no keymap; the place of the file can be named."""
    assert read_keymap(tmp_path / "keys.toml") == {}
    monkeypatch.setenv("VERTUMNUS_KEYS", str(tmp_path / "mine.toml"))
    assert keymap_path() == tmp_path / "mine.toml"
    monkeypatch.delenv("VERTUMNUS_KEYS")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert keymap_path() == tmp_path / "vertumnus" / "keys.toml"


def test_names_get_keys(tmp_path: Path) -> None:
    """A name may have another key, also one that its owner gives up."""
    path = tmp_path / "keys.toml"
    path.write_text('split = "m"\nmerge = "s"\nevents = "f2, ctrl+e"\nsave = "_"\nhelp = "é"\n')
    assert read_keymap(path) == {
        "split": "m",
        "merge": "s",
        "events": "f2, ctrl+e",
        "save": "_",
        "help": "é",
    }
    assert key_names("f2, ctrl+e") == ["f2", "ctrl+e"] and key_names("_,+") == ["underscore", "plus"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('splt = "S"', "splt: no such name; allowed: auto, back, busiest"),
        ("split = 5", "split: found 5, must be a key"),
        ('split = ""', "split: found '', must be a key"),
        ('split = "m"', "key 'm' is given to split and merge"),
        ("split =", "Invalid value"),
        ('split = "Spltt"', 'split: found \'Spltt\', must be a key as "S" or "f2"'),
        ('split = "f2,"', "split: found 'f2,', must be a key"),
        ('split = "ctrl+"', "split: found 'ctrl+', must be a key"),
        ('split = "+"', "key 'plus' is given to split and faster"),
        (
            'split = "X,escape"',
            "split: found 'X,escape', not to be given: ctrl+c, ",
        ),
        ("[split]\nkey = 1", "split: found {'key': 1}, must be a key"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, text: str, said: str) -> None:
    """The message names the file, the name and what is allowed."""
    path = tmp_path / "keys.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as refused:
        read_keymap(path)
    assert str(path) in str(refused.value) and said in str(refused.value)


def test_no_two_keys_clash() -> None:
    """Every key of the table is its own, and none of those that terminals take for themselves."""
    keys = [key for each in KEYS for key in each.keys.split(",")]
    assert len(keys) == len(set(keys)) and not {"ctrl+a", "ctrl+b", "ctrl+s"} & set(keys)
    assert len({each.name for each in KEYS}) == len(KEYS)
