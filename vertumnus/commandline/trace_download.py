"""``trace download``: a published trace, fetched to where the config of its workload looks for it."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from vertumnus.commandline.columns import in_columns
from vertumnus.commandline.exit_codes import FAILED, OK
from vertumnus.commandline.listing import option_files
from vertumnus.commandline.parser import Parser
from vertumnus.config import did_you_mean
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.wording import counted
from vertumnus.trace.download import DownloadFailed, Tell, download

KEYS = ("path", "url", "sha256")
TOLD_BYTES = 16 << 20
"""Progress is told each time that so much has come."""


def fetch(words: Sequence[str]) -> int:
    """``trace download [NAME]``: fetch the file of a workload, or list those that can be fetched."""
    parser = Parser(prog="vertumnus trace download", description="Fetch a published trace and check it.")
    parser.add_argument(
        "name", nargs="?", help="a workload with a url, or the end of its name; none: list them"
    )
    parser.add_argument(
        "keys", nargs="*", metavar="key=value", help="other path, url or sha256 than its config's"
    )
    read = parser.parse_intermixed_args(words)
    workloads = _fetchable()
    if read.name is None:
        rows = [(name, str(workload["path"]), str(workload["url"])) for name, workload in workloads.items()]
        print(in_columns([("name", "path", "url"), *rows]))
        return OK
    workload = {**workloads[_meant(read.name, workloads)], **_given(read.keys)}
    try:
        found = download(workload["url"], Path(workload["path"]), workload["sha256"], _telling())
    except DownloadFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return FAILED
    state = "as expected" if found.is_pinned else "seen for the first time, expected from now on"
    print(f"{found.path}: {counted(found.payload_bytes, 'byte')}, sha256 {found.sha256} ({state})")
    return OK


def _fetchable() -> dict[str, Mapping[str, Any]]:
    """Return the workloads whose file has an address, by name."""
    files = option_files("workload")
    trees = {name: yaml.safe_load(file.read_text(encoding="utf-8")) for name, file in files.items()}
    return {name: tree for name, tree in trees.items() if tree.get("url")}


def _meant(name: str, workloads: Mapping[str, object]) -> str:
    """Return the workload called *name*, or the only one whose name ends so."""
    if name in workloads:
        return name
    ending = [known for known in workloads if known.endswith(f"_{name}")]
    if len(ending) != 1:
        raise ConfigError(f"download {name}: no such trace{did_you_mean(name, workloads)}")
    return ending[0]


def _given(words: Sequence[str]) -> dict[str, str | None]:
    given: dict[str, str | None] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if key not in KEYS or not equals:
            raise ConfigError(f"{word}: must be one of {', '.join(f'{key}=...' for key in KEYS)}")
        given[key] = None if value == "null" else value
    return given


def _telling() -> Tell:
    """Return what tells progress on stderr, now and then."""
    told = 0

    def tell(have: int, total: int | None) -> None:
        nonlocal told
        if have - told >= TOLD_BYTES or have == total:
            told = have
            of = f" of {total / 1e6:,.1f}" if total else ""
            print(f"{have / 1e6:,.1f}{of} MB", file=sys.stderr)

    return tell
