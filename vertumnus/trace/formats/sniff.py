"""Which format a trace file has, from its first line."""

from pathlib import Path

import msgspec

from vertumnus.domain.errors import ConfigError
from vertumnus.trace.formats.known import KNOWN, FormatName
from vertumnus.trace.formats.lines import nearest_file, numbered_lines

PARQUET_MAGIC = b"PAR1"
BY_KEY: tuple[tuple[frozenset[str], FormatName], ...] = (
    (frozenset({"conversations"}), "share_gpt"),
    (frozenset({"instructions"}), "l_eval"),
    (frozenset({"parent_chat_id"}), "bailian"),
    (frozenset({"output_length", "session_id"}), "mooncake_plus"),
    (frozenset({"output_length", "hash_ids"}), "mooncake"),
    (frozenset({"output_length"}), "mooncake_plus"),
    (frozenset({"prompt"}), "prompts"),
    (frozenset({"messages"}), "prompts"),
    (frozenset({"text_input"}), "prompts"),
    (frozenset({"request"}), "prompts"),
    (frozenset({"body"}), "prompts"),
)
"""The first entry whose keys are all in the first record tells the format."""
BY_COLUMN: tuple[tuple[str, FormatName], ...] = (("ContextTokens", "azure"), ("Request tokens", "burst_gpt"))


def sniff(path: Path) -> FormatName:
    """Return the format of the file at *path*. Raises ConfigError when it cannot be read or told."""
    require_file(path)
    with path.open("rb") as file:
        if file.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC:
            return "parquet"
    first = next(numbered_lines(path), None)
    if first is None:
        raise ConfigError(f"{path}: the file is empty")
    found = _of_line(first.text)
    if found is None:
        shown = first.text[:60].decode("utf-8", "replace").strip()
        raise ConfigError(
            f"{path}:{first.number}: no known format; found {shown!r}; name it: format={'|'.join(KNOWN)}"
        )
    return found


def require_file(path: Path) -> None:
    """Raise ConfigError, which says what *path* is instead, unless it is a file."""
    if not path.is_file():
        raise ConfigError(f"{path}: {_no_file(path)}")


def _no_file(path: Path) -> str:
    if path.is_dir():
        return "is a folder"
    if path.exists():
        return "is no file on a disk, and a trace is read more than once; save it first"
    return f"no such file{nearest_file(path)}"


def _of_line(text: bytes) -> FormatName | None:
    try:
        keys = set(msgspec.json.decode(text, type=dict[str, object]))
    except (msgspec.DecodeError, UnicodeDecodeError):
        columns = text.decode("utf-8-sig", "replace")
        return next((name for column, name in BY_COLUMN if column in columns), None)
    return next((name for wanted, name in BY_KEY if wanted <= keys), None)
