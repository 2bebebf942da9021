"""Logs of prompts as JSON lines: prompts, chats, or a gateway's access log; what they say is not kept.

A line is an object with a prompt (``prompt``, ``text_input`` or ``messages``), in itself or below ``request``
or ``body``; its time; how much was answered (``usage``, ``output_tokens``, or the answer's text, below
``response`` too); a session, if there is one. A row has the lengths, and a hash for each block of the prompt.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from vertumnus.domain.units import Nanoseconds, Tokens
from vertumnus.trace.formats.fields import MOST_NS, NO_OUTPUT, RowError, json_object, spelled
from vertumnus.trace.formats.format import Reading
from vertumnus.trace.formats.texts import count_tokens, text_blocks
from vertumnus.trace.rows import TraceRow

Record = Mapping[str, object]
PROMPT_KEYS = ("messages", "prompt", "text_input")
TIME_KEYS = ("timestamp", "time", "created_at", "created", "ts")
SESSION_KEYS = ("session_id", "conversation_id", "chat_id")
OUTPUT_KEYS = ("output_tokens", "completion_tokens", "output_length")
ANSWER_KEYS = ("completion", "output", "answer", "text", "content")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LATEST_S = 1e11
"""Numbers above this are milliseconds since 1970, not seconds: as seconds they lie after the year 5000."""


class Usage(NamedTuple):
    """What the log itself says of lengths, to set chars_per_token by."""

    characters: int
    tokens: Tokens


class PromptRows:
    """Rows of a log, at its times."""

    has_times = True

    def __init__(self, reading: Reading, header: bytes) -> None:
        self._reading = reading
        self.usage = Usage(0, 0)
        """Summed over the lines that tell how many tokens their prompt had."""

    def of(self, text: bytes) -> list[TraceRow]:
        """Return the row of one line. Raises RowError for what is missing or cannot be read."""
        record = json_object(text).record
        requests = record, record.get("request"), record.get("body")
        parts = [part for part in requests if isinstance(part, dict)]
        prompt = _prompt(parts)
        tokens, ids = text_blocks(prompt, self._reading)
        at_ns = _time(parts)
        self._note_usage(record, prompt)
        session = _session(parts)
        return [TraceRow(at_ns, tokens, self._output(record), ids, session, session)]

    def _note_usage(self, record: Record, text: str) -> None:
        prompt_tokens = next(_whole(_usages(record), ("prompt_tokens", "input_tokens")), None)
        if prompt_tokens:
            self.usage = Usage(self.usage.characters + len(text), self.usage.tokens + prompt_tokens)

    def _output(self, record: Record) -> Tokens:
        """Return the tokens of the answer as told, else by its text, at least 1."""
        told = next(_whole(_usages(record), OUTPUT_KEYS), None)
        if told is not None and (told or self._reading.may_be_empty):
            return told
        if told == 0:
            raise RowError(f"no output: {NO_OUTPUT}")
        answers = (answer for part in _answers(record) if (answer := _text(part)))
        return max(1, count_tokens(next(answers, ""), self._reading.chars_per_token))


def _session(parts: Sequence[Record]) -> str | None:
    found = (part[key] for part in parts for key in SESSION_KEYS if part.get(key) is not None)
    return next(map(str, found), None)


def _prompt(parts: Sequence[Record]) -> str:
    for part in parts:
        for key in PROMPT_KEYS:
            if isinstance(part.get(key), str):
                return str(part[key])
            if isinstance(part.get(key), list):
                return "".join(_message(message) for message in _list(part[key]))
    raise RowError(f"found no prompt; must have one of {', '.join(PROMPT_KEYS)}, or request or body with it")


def _message(message: object) -> str:
    """Return what a chat message says, and by whom, as it would stand in the prompt."""
    if isinstance(message, str):
        return message
    if not isinstance(message, dict):
        raise RowError(f"messages: found {spelled(message)}, must be objects with role and content")
    return f"{message.get('role', '')}\n{_text(message)}\n"


def _text(part: object) -> str:
    """Return the text of a message or an answer; of content in pieces, all of it."""
    if isinstance(part, str):
        return part
    if isinstance(part, list):
        return "".join(_text(piece) for piece in part)
    if not isinstance(part, dict):
        return ""
    return next((text for key in ANSWER_KEYS if (text := _text(part.get(key)))), "")


def _time(parts: Sequence[Record]) -> Nanoseconds:
    for part in parts:
        for key in TIME_KEYS:
            if part.get(key) is not None:
                return _nanoseconds(key, part[key])
    raise RowError(f"found no time; must have one of {', '.join(TIME_KEYS)}")


def _nanoseconds(key: str, value: object) -> Nanoseconds:
    """Return a date, or seconds or milliseconds, as nanoseconds since 1970, exact to a microsecond."""
    try:
        at_us = _date(value) if isinstance(value, str) and not _is_number(value) else _number(value)
    except (ValueError, OverflowError):
        at_us = -1
    if not 0 <= at_us * 1_000 < MOST_NS:
        raise RowError(
            f"{key}: found {spelled(value)}, must be a date, or seconds or milliseconds since 1970"
        )
    return at_us * 1_000


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdecimal()


def _date(text: str) -> int:
    """Return a date as microseconds since 1970; without a zone it is taken as UTC."""
    moment = datetime.fromisoformat(text)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - EPOCH) // timedelta(microseconds=1)


def _number(value: object) -> int:
    if not isinstance(value, int | float | str) or isinstance(value, bool):
        raise ValueError(value)
    number = float(value)
    return round(number * (1e6 if number < LATEST_S else 1e3))


def _usages(record: Record) -> Iterator[Record]:
    """Yield where a log says how many tokens there were."""
    response = record.get("response")
    for part in (record, response):
        if isinstance(part, dict):
            usage = part.get("usage")
            yield from (found for found in (usage, part) if isinstance(found, dict))


def _whole(parts: Iterable[Record], keys: Sequence[str]) -> Iterator[int]:
    yield from (value for part in parts for key in keys if type(value := part.get(key)) is int and value >= 0)


def _answers(record: Record) -> Iterator[object]:
    """Yield where a log may hold the text of an answer."""
    for part in (record.get("response"), record):
        if isinstance(part, dict):
            for choice in _list(part.get("choices")):
                if isinstance(choice, dict):
                    yield choice.get("message", choice)
            yield {key: part[key] for key in ("completion", "output", "answer") if key in part}
        elif part is not None:
            yield part


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
