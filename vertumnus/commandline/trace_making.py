"""The verbs of ``trace`` that write traces, ``convert`` and ``capture``; files appear whole or not at all."""

import os
import secrets
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, islice
from pathlib import Path

from vertumnus.commandline.exit_codes import OK
from vertumnus.commandline.parser import Parser
from vertumnus.commandline.trace_source import READING, Source, source_of, split
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.wording import counted
from vertumnus.records.atomic import write_whole
from vertumnus.trace.config import WorkloadConfig
from vertumnus.trace.formats.sniff import require_file
from vertumnus.trace.formats.writing import TARGETS, Target, TraceWriter
from vertumnus.trace.load import Passing, pass_rows
from vertumnus.trace.rows import TraceRow
from vertumnus.trace.salting import SALT_BYTES, salted, since_first

ENDINGS = (".jsonl", ".jsonl.gz", ".parquet")
"""Of files whose format need not be named."""
Change = Callable[[Iterable[TraceRow]], Iterable[TraceRow]]


def convert(words: Sequence[str]) -> int:
    """``trace convert FILE|generator=NAME OUT``: write a trace in another format."""
    parser = _parser("convert", "Write a trace in another format, rows in order of arrival.")
    read = parser.parse_intermixed_args(words)
    files, keys = split(read.words)
    is_generated = any(key.startswith("generator=") for key in keys)
    out = _target_file(files, read, to_read=0 if is_generated else 1)
    source = source_of([*files[:-1], *keys])
    if source.workload.format == "prompts":
        raise ConfigError(
            "this is a log of prompts, not a trace; use vertumnus trace capture, which salts it"
        )
    has_dates = source.workload.format == "azure"
    _write(source, out, read.to, since_first if has_dates else iter)
    return OK


def capture(words: Sequence[str]) -> int:
    """``trace capture LOG OUT``: write a log of prompts as a trace without a word of them."""
    parser = _parser("capture", "Make a trace of lengths, times and salted hashes out of a log of prompts.")
    salt_help = (
        "the secret behind the hashes, made if missing; traces under one salt share ids. Default: forgotten"
    )
    parser.add_argument("--salt-file", type=Path, metavar="FILE", help=salt_help)
    read = parser.parse_intermixed_args(words)
    files, keys = split(read.words)
    out = _target_file(files, read)
    for file in files[:-1]:
        require_file(Path(file))
    source = source_of([*files[:-1], *keys], {"format": "prompts"})
    salt = _salt(read.salt_file)
    usage = _write(source, out, read.to, lambda rows: salted(since_first(rows), salt)).usage
    if usage is not None:
        fitting, taken = usage.characters / usage.tokens, source.workload.chars_per_token
        _say(
            f"the log's own counts make {fitting:.2f} characters a token, {taken:g} were taken; "
            f"chars_per_token={fitting:.2f} gives lengths that fit it"
        )
    return OK


def _parser(verb: str, says: str) -> Parser:
    parser = Parser(prog=f"vertumnus trace {verb}", description=says)
    parser.add_argument(
        "words", nargs="+", metavar="FILE", help=f"files to read, the file to write; {READING}"
    )
    parser.add_argument("--to", choices=TARGETS, help="default: parquet for .parquet, else mooncake")
    parser.add_argument("--force", action="store_true", help="replace the file to write")
    return parser


def _write(source: Source, out: Path, target: Target | None, change: Change) -> Passing:
    """Write *source*, changed, to *out*, and return what has passed."""
    to: Target = target or ("parquet" if out.suffix == ".parquet" else "mooncake")
    workload, seed = source
    passing, writer = pass_rows(workload, seed, lambda rows: _written(rows, workload, out, to, change))
    block = workload.scaled_block_tokens
    _say(f"{out}: {counted(writer.written, 'row')} ({to}, blocks of {block}) of {passing.description()}")
    if writer.rounded:
        _say(f"rounded to whole milliseconds: {counted(writer.rounded, 'time')}")
    return passing


def _written(
    passing: Passing, workload: WorkloadConfig, out: Path, to: Target, change: Change
) -> tuple[Passing, TraceWriter]:
    rows = iter(passing)
    first = list(islice(rows, 1))  # only then it is known whether there are times
    writer = TraceWriter(to, workload.scaled_block_tokens, passing.has_times, out.suffix == ".gz")
    write_whole(out, lambda file: writer.write(file, change(chain(first, rows))))
    return passing, writer


def _target_file(files: Sequence[str], read: Namespace, to_read: int = 1) -> Path:
    """Return the last of *files*, after *to_read* or more. Raises ConfigError unless it can be made."""
    if len(files) < to_read + 1:
        found = ", ".join(files) or "no file"
        raise ConfigError(f"found {found}, must be {'one to read and ' if to_read else ''}one to write")
    out = Path(files[-1])
    if not out.parent.is_dir():
        raise ConfigError(f"{out}: there is no folder {str(out.parent)!r}")
    if read.to is None and not out.name.endswith(ENDINGS):
        raise ConfigError(f"{out}: must end in {', '.join(ENDINGS)}, or say --to {'|'.join(TARGETS)}")
    if out.is_dir():
        raise ConfigError(f"{out}: is a folder, must be a file to write")
    if out.exists() and not read.force:
        raise ConfigError(f"{out}: is there already; --force replaces it")
    if any(out.resolve() == Path(file).resolve() for file in files[:-1]):
        raise ConfigError(f"{out}: is read from, it cannot be written to")
    return out


def _salt(path: Path | None) -> bytes:
    """Return the salt in *path*, which is made for its owner alone when it is missing."""
    if path is None:
        return secrets.token_bytes(SALT_BYTES)
    if not path.exists():
        if not path.parent.is_dir():
            raise ConfigError(f"--salt-file: there is no folder {str(path.parent)!r}")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{secrets.token_hex(SALT_BYTES)}\n")
        _say(f"{path}: a new salt; whoever has it can test which texts the trace holds")
    try:
        salt = bytes.fromhex(path.read_text().strip())
    except (ValueError, OSError):
        salt = b""
    if len(salt) != SALT_BYTES:
        raise ConfigError(f"--salt-file: {path} must hold {2 * SALT_BYTES} hexadecimal digits")
    return salt


def _say(line: str) -> None:
    print(line, file=sys.stderr)
