"""Data sets of texts as JSON lines: ShareGPT's conversations and L-Eval's documents; neither has times.

* `share_gpt`: ``conversations``, a list of turns (``from`` and ``value``, or ``role`` and ``content``).
  Each answered question is a request whose prompt is everything said before the answer.
* `l_eval`: ``input``, a document, with ``instructions`` and ``outputs``. Each instruction is a request whose
  prompt is the document and the instruction, so that the document is shared.
"""

from collections.abc import Iterator

from vertumnus.domain.units import Tokens
from vertumnus.trace.formats.fields import NO_OUTPUT, Fields, RowError, json_object
from vertumnus.trace.formats.format import Reading
from vertumnus.trace.formats.texts import count_tokens, text_blocks
from vertumnus.trace.rows import TraceRow

ASKING = ("human", "user")
ANSWERING = ("gpt", "assistant", "chatgpt", "bard", "bing")


class ShareGptRows:
    """One request for each answer of a conversation."""

    has_times = False

    def __init__(self, reading: Reading, header: bytes) -> None:
        self._reading = reading
        self._conversations = 0

    def of(self, text: bytes) -> list[TraceRow]:
        """Return the requests of one conversation. Raises RowError."""
        fields = json_object(text)
        turns = [_Turn(turn) for turn in fields.objects("conversations")]
        fields.problems += [f"conversations[{i}].{p}" for i, t in enumerate(turns) for p in t.fields.problems]
        fields.done()
        self._conversations += 1
        session = fields.identity("id") or f"#{self._conversations}"
        return [row._replace(session=session, follows=session) for row in self._answers(turns)]

    def _answers(self, turns: list["_Turn"]) -> Iterator[TraceRow]:
        said, asked = "", False
        for turn in turns:
            if turn.role in ANSWERING and asked:
                yield _row(said, turn.text, self._reading)
            asked = turn.role in ASKING
            said += f"{turn.text}\n"


class _Turn:
    """What one side said."""

    def __init__(self, turn: object) -> None:
        assert isinstance(turn, dict)
        self.fields = Fields(turn)
        role, text = ("from", "value") if "from" in turn else ("role", "content")
        self.role, self.text = self.fields.text(role), self.fields.text(text)


class LEvalRows:
    """One request for each instruction of a document."""

    has_times = False

    def __init__(self, reading: Reading, header: bytes) -> None:
        self._reading = reading

    def of(self, text: bytes) -> list[TraceRow]:
        """Return the requests of one document. Raises RowError."""
        fields = json_object(text)
        document = fields.text("input")
        instructions, outputs = fields.list_of_texts("instructions"), fields.list_of_texts("outputs")
        fields.done()
        if len(instructions) != len(outputs):
            raise RowError(f"outputs: found {len(outputs)}, must be {len(instructions)}, one an instruction")
        return [
            _row(f"{document}\n{instruction}", output, self._reading)
            for instruction, output in zip(instructions, outputs, strict=True)
        ]


def _row(prompt: str, answer: str, reading: Reading) -> TraceRow:
    tokens, ids = text_blocks(prompt, reading)
    output: Tokens = count_tokens(answer, reading.chars_per_token)
    if output < 1 and not reading.may_be_empty:
        raise RowError(f"an answer is empty: {NO_OUTPUT}")
    return TraceRow(0, tokens, output, ids)
