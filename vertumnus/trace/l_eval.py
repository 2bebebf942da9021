"""The L-Eval workload, generated: questions about long documents, several to each document.

L-Eval is a fixed set of documents and questions, so lengths are the same for every seed, which decides
when each question comes. The table holds quantiles of the public lengths of 18 of its 20 tasks, at 5.2
characters a token for documents, 4.5 for questions and 4.8 for answers; the last two tasks and the tails
of answers are fitted to Table 1: 2,369 requests, mean and P99 input 13,728 and 68,056 tokens, output
42.76 and 459, and 79.61 % reuse by an oracle. The set has no time stamps; arrivals are Poisson.
"""

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

import numpy as np

from vertumnus.domain.units import Tokens, to_ns
from vertumnus.trace.drafts import BLOCK_TOKENS, NO_PARENT, Drafts, joined, to_rows
from vertumnus.trace.rows import TraceRow
from vertumnus.trace.sampling import Integers, stream, systematic

RATE = 12.0
"""Mean of the Poisson arrivals: the middle of Fig. 7's axis [req/s]."""
TASK_TOKENS: Tokens = 120
"""What every request says before its document."""
SPREAD = 400
"""The questions of a document come within this many requests of the trace."""
OWN_SHARE = 0.045
"""Of the requests, those whose document no other request has."""
QUANTILES = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)
Lengths: TypeAlias = tuple[float, float, float, float, float, float]
"""Tokens at QUANTILES."""


class Task(NamedTuple):
    """One task of L-Eval."""

    documents: int
    questions: int
    """Of all its documents together."""
    document: Lengths
    question: Tokens
    """Mean length, the same for each."""
    answer: Lengths


TASKS: Mapping[str, Task] = {
    "coursera": Task(15, 172, (4490, 5717, 6640, 8382, 11806, 13720), 67, (1, 1, 1, 1, 1, 1)),
    "gsm100": Task(1, 100, (3230, 3230, 3230, 3230, 3230, 3230), 59, (1, 1, 1, 1, 1, 1)),
    "quality": Task(15, 202, (2418, 4932, 5164, 5413, 5473, 5608), 76, (1, 8, 14, 19, 25, 38)),
    "sci_fi": Task(7, 64, (3961, 7004, 11995, 15584, 17733, 19490), 37, (4, 4, 4, 4, 4, 4)),
    "topic_retrieval": Task(50, 150, (7820, 8092, 10863, 13541, 13646, 13871), 21, (6, 7, 7, 8, 9, 11)),
    "tpo": Task(15, 269, (2916, 3062, 3128, 3173, 3208, 3341), 68, (1, 1, 1, 1, 1, 1)),
    "financial_qa": Task(8, 68, (4211, 4211, 4367, 4594, 5448, 6008), 49, (11, 56, 77, 89, 138, 207)),
    "gov_report": Task(14, 14, (2590, 3359, 4262, 5739, 8281, 16856), 11, (203, 319, 366, 446, 534, 560)),
    "legal": Task(23, 154, (6216, 11908, 17961, 25600, 42684, 52311), 51, (9, 38, 68, 93, 162, 330)),
    "meeting": Task(23, 177, (3001, 6952, 9668, 15295, 18021, 23121), 15, (27, 54, 71, 97, 127, 160)),
    "multidoc_qa": Task(23, 158, (2368, 2497, 2752, 3445, 3686, 6331), 17, (3, 15, 23, 33, 42, 59)),
    "natural_question": Task(21, 109, (4407, 7872, 11458, 19942, 26880, 26942), 11, (1, 2, 3, 5, 8, 27)),
    "news": Task(12, 12, (2459, 3169, 3513, 5641, 10038, 15475), 8, (234, 328, 338, 359, 396, 414)),
    "paper_assistant": Task(
        23, 69, (3707, 4631, 5177, 7799, 9684, 16400), 107, (131, 233, 368, 482, 588, 780)
    ),
    "patent": Task(14, 14, (2404, 3617, 4462, 7325, 9006, 9799), 14, (49, 120, 149, 195, 228, 278)),
    "review": Task(24, 144, (14018, 14943, 15314, 16428, 16984, 17435), 20, (26, 70, 97, 142, 256, 326)),
    "scientific_qa": Task(23, 184, (2294, 2923, 4188, 5120, 5258, 5555), 10, (1, 3, 13, 24, 35, 121)),
    "tv_show": Task(14, 14, (3730, 4092, 5819, 8141, 8680, 8726), 7, (59, 106, 126, 132, 158, 246)),
    "code_u": Task(15, 90, (25000, 28600, 31000, 33400, 35500, 37000), 60, (1, 2, 3, 5, 8, 16)),
    "narrative_qa": Task(20, 205, (39000, 56500, 62000, 66500, 68200, 69500), 12, (1, 3, 5, 8, 13, 30)),
}
REQUESTS = sum(task.questions for task in TASKS.values())
NO_DOCUMENT = -1
"""The place of the prompt without blocks, which is the last one."""


def l_eval(seed: int) -> list[TraceRow]:
    """Return the trace of *seed* in order of arrival, in blocks of BLOCK_TOKENS tokens."""
    random = stream(seed, "l_eval")
    documents = np.concatenate([_lengths(task.document, task.documents) for task in TASKS.values()])
    drafts = joined(*_questions(random))
    order = np.argsort(drafts.at_s, kind="stable")
    arrivals_s = np.cumsum(random.exponential(1 / RATE, len(order)))
    shared_blocks = (TASK_TOKENS + documents) // BLOCK_TOKENS
    return to_rows(drafts, order, [to_ns(at) for at in arrivals_s.tolist()], [*shared_blocks.tolist(), 0])


def _questions(random: np.random.Generator) -> list[Drafts]:
    """Return the requests of each task, timed by their place in the whole trace."""
    parts, first = [], 0
    for task in TASKS.values():
        parts.append(_task(random, task, first))
        first += task.documents
    return parts


def _task(random: np.random.Generator, task: Task, first: int) -> Drafts:
    """Return the requests of *task*, the prompts of whose documents are numbered from *first*."""
    document = np.arange(task.questions) * task.documents // task.questions
    starts = random.uniform(0, REQUESTS - SPREAD, task.documents)
    is_shared = np.ones(task.questions, dtype=bool)
    is_shared[systematic(random, np.full(task.questions, OWN_SHARE))] = False
    return Drafts(
        at_s=starts[document] + random.uniform(0, SPREAD, task.questions),
        input_tokens=TASK_TOKENS + _lengths(task.document, task.documents)[document] + task.question,
        output_tokens=random.permutation(_lengths(task.answer, task.questions)),
        prompt=np.where(is_shared, first + document, NO_DOCUMENT),
        parent=np.full(task.questions, NO_PARENT),
    )


def _lengths(at_quantiles: Lengths, size: int) -> Integers:
    """Return *size* lengths evenly over the distribution that *at_quantiles* draws, ascending."""
    return np.interp((np.arange(size) + 0.5) / size, QUANTILES, at_quantiles).astype(np.int64)
