"""Mooncake traces (FAST '25), Bailian's and the extension that load generators read: JSON lines.

* `mooncake`: ``timestamp``, ``input_length``, ``output_length`` and ``hash_ids``, one id a block of the
  prompt, the last of which may be partial.
* `mooncake_plus`: stamps and ids may be missing; ``session_id`` joins turns, a turn without a stamp comes
  ``delay`` after the one before it; ``text_input`` or ``messages`` may stand for length and ids.
* `bailian`: as mooncake, with stamps in seconds and blocks of 16; ``chat_id`` and ``parent_chat_id`` join
  turns.

Further fields are left alone.
"""

from vertumnus.domain.units import Nanoseconds
from vertumnus.trace.formats.fields import Fields, json_object
from vertumnus.trace.formats.format import Reading
from vertumnus.trace.formats.texts import text_blocks
from vertumnus.trace.rows import TraceRow


class MooncakeRows:
    """Rows of the published traces."""

    has_times = True

    def __init__(self, reading: Reading, header: bytes) -> None:
        self._reading = reading

    def of(self, text: bytes) -> list[TraceRow]:
        """Return the row that one line spells. Raises RowError."""
        fields = json_object(text)
        row = self._row(fields)
        fields.done()
        return [row]

    def _row(self, fields: Fields) -> TraceRow:
        return _row(fields, self._reading)


class BailianRows(MooncakeRows):
    """Rows that name their turn and the turn before it."""

    def _row(self, fields: Fields) -> TraceRow:
        chat, parent = fields.identity("chat_id"), fields.identity("parent_chat_id")
        return super()._row(fields)._replace(session=chat, follows=parent)


class MooncakePlusRows:
    """Rows of which much may be missing."""

    def __init__(self, reading: Reading, header: bytes) -> None:
        self._reading = reading
        self._latest: dict[str, Nanoseconds] = {}
        """The arrival of each session's latest turn."""
        self._has_times: bool | None = None

    @property
    def has_times(self) -> bool:
        """Whether rows have stamps: the first one decides."""
        return self._has_times is not False

    def of(self, text: bytes) -> list[TraceRow]:
        """Return the row that one line spells. Raises RowError."""
        fields = json_object(text)
        session = fields.identity("session_id")
        pause_ns = self._instant(fields, "delay") if fields.has("delay") else None
        arrival_ns = self._arrival(fields, session, pause_ns)
        tokens, ids = self._prompt(fields)
        output = fields.output("output_length", self._reading.may_be_empty)
        fields.done()
        if session is not None:
            self._latest[session] = arrival_ns
        return [TraceRow(arrival_ns, tokens, output, ids, session, session, pause_ns)]

    def _arrival(self, fields: Fields, session: str | None, pause_ns: Nanoseconds | None) -> Nanoseconds:
        latest_ns = self._latest.get(session) if session is not None else None
        if not fields.has("timestamp") and latest_ns is not None:
            return latest_ns + (pause_ns or 0)
        if self._has_times is None:
            self._has_times = fields.has("timestamp")
        if self._has_times:
            return self._instant(fields, "timestamp")
        if fields.has("timestamp"):
            fields.wrong("timestamp", "missing, as it is in the first row")
        return 0

    def _instant(self, fields: Fields, key: str) -> Nanoseconds:
        return fields.instant(key, self._reading.unit_ns, has_fractions=True)

    def _prompt(self, fields: Fields) -> tuple[int, tuple[int, ...] | None]:
        has_text = fields.has("text_input") or fields.has("messages")
        if fields.has("input_length") or not has_text:
            ids = fields.ids("hash_ids") if fields.has("hash_ids") else None
            return fields.tokens("input_length"), ids
        if fields.has("text_input"):
            return text_blocks(fields.text("text_input"), self._reading)
        return text_blocks(_joined(fields), self._reading)


def _row(fields: Fields, reading: Reading) -> TraceRow:
    return TraceRow(
        arrival_ns=fields.instant("timestamp", reading.unit_ns),
        input_tokens=fields.tokens("input_length"),
        output_tokens=fields.output("output_length", reading.may_be_empty),
        block_ids=fields.ids("hash_ids"),
    )


def _joined(fields: Fields) -> str:
    messages = [Fields(message) for message in fields.objects("messages")]
    texts = [message.text("content") for message in messages]
    fields.problems += [f"messages: {problem}" for message in messages for problem in message.problems]
    return "\n".join(texts)
