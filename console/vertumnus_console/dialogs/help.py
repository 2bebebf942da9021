"""The help that ``?`` opens on every screen: its words, then all keys."""

from collections.abc import Collection, Mapping

from textual.content import Content

from vertumnus_console.dialogs.text import TextScreen
from vertumnus_console.keys import Key, Kind

WORDS = {
    "overview": """\
A line is a node, a box a worker, as wide as its degree: 32x2 has two ranks
from 32 on (in a narrow box it is 32). "3q 1.2 s": 3 queued; predicted work
left there, the rest of the running step included. Up and down select a worker;
s, m and d act on it. busy: of the last minute, spent in steps.
Attainment weighs requests by input tokens. All requests count here; the report
leaves the warm-up out.""",
    "workers": """\
busy: share of the last minute spent in steps. work: predicted, still to do.
running: a request, its tokens to compute (R) and cached (P); +2: two more in
that step. blocks: in use / all. hits: share of input tokens found cached, of
the requests that have ended. s, m and d act on the row under the cursor.""",
    "queues": """\
The longest queue first, each in the order in which it would run. passes: how
many that came before it run after it; passed by: the other way round. s:
predicted prefill; P: cached tokens as routing saw them.""",
    "trie": """\
A row is a prefix that no longer prefix is wanted as much as. access: reuses,
decayed at each scan; missed: predicted time lost for want of a copy; holders:
workers that have its last block. Enter: holders along the path, and who uses it.
y copies it to a worker, x deletes it at one; both show what that means first.""",
    "choices": """\
The newest placements, in ms: wait, service with P cached tokens, gpu: lambda
times the extra GPU time, others: what those queued behind would wait longer,
cost: what decided (with beta times service); next best and by how much. Enter:
every candidate, its pending and pulled blocks, who was left out, what came. Of a
pool of more than 64 workers every second, third, ... placement is here, with its
64 cheapest candidates.""",
    "events": """\
Moves under way with their bars: half for the drain, half for the switch. Below:
what operators did, moves, copies with bytes and speed, faults; newest first.
after: TTFT P90 and attainment of the minute before a move and of that since;
demand may have changed as well.""",
    "model": """\
Measured over predicted step times by degree: bias of the last 200 steps (above
0: steps take longer), their P90, the mean over the run. DRIFT: the bias is more
than the error that the model has anyway. Below: the controller's windows.""",
    "compare": """\
Two runs at one instant of their clocks. A live run leads and the other keeps up
with it; runs that are over play together. B against A: times as a ratio, shares
as a difference in points. Nothing can be changed here.""",
    "log": """\
Newest first: inputs (>), facts (.), orders (<) as the log has them.""",
}


def help_screen(pane: str, keys_of: Mapping[str, str], keys: Collection[Key]) -> TextScreen:
    """Return the help of *pane*, where *keys* do something; *keys_of* names the keys in force."""
    parts = [Content.styled(pane, "bold"), Content(" ".join(WORDS[pane].splitlines())), Content("")]
    kinds: tuple[Kind, ...]
    for title, kinds in (("screens", ("screen",)), ("act", ("act",)), ("show", ("time", "other"))):
        lines = [_line(key, keys_of) for key in keys if key.kind in kinds]
        parts += [Content.styled(title, "bold"), *lines] if lines else []
    parts.append(Content("ctrl+p       all commands by name"))
    return TextScreen("help", Content("\n").join(parts))


def _line(key: Key, keys_of: Mapping[str, str]) -> Content:
    shown = key.written(keys_of.get(key.name))
    return Content.assemble((shown.ljust(7), "bold"), f"{key.name.ljust(12)} {key.help}")
