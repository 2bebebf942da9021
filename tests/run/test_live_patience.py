"""Clients of executing ranks that give up: the others' outputs are those of the undisturbed run."""

from collections.abc import Collection
from io import StringIO
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from tests.run.test_live_moves import check_outputs, check_served
from tests.support.live_stack import live_stack
from vertumnus.commandline.hydra_configs import composed, hydra_configs, plain_tree
from vertumnus.config import RunConfig, to_run_config
from vertumnus.domain.facts import RequestArrived, RequestCancelled, RequestEnded, StepStarted
from vertumnus.domain.request import Request
from vertumnus.domain.units import RequestId
from vertumnus.records.run_dir import find_run
from vertumnus.run.asked import Asked
from vertumnus.run.audit import audit_run
from vertumnus.run.execute import execute
from vertumnus.serving.engine import Engine
from vertumnus.serving.patience import ImpatientClients
from vertumnus.workers.fleet import Fleet

pytestmark = pytest.mark.live

PATIENCE_NS = 100_000
"""Few have a token so soon: on its way a request goes from process to process and back, twice.

Where this process was held up for that long, the token is told first and the request served, as it should be.
"""
REQUESTS = 40
IMPATIENT = {number for number in range(REQUESTS) if number % 3 == 0}


class SomeImpatient(ImpatientClients):
    """Clients of whom only some ever give up."""

    def __init__(self, engine: Engine, fleet: Fleet, who: Collection[RequestId]) -> None:
        self._who = who
        super().__init__(engine, fleet, PATIENCE_NS)

    def _wait(self, request: Request) -> None:
        if request.request_id in self._who:
            super()._wait(request)


def a_config(*words: str) -> RunConfig:
    """The first requests of the tool-agent trace for two nano ranks."""
    ranks = ("model=nano", "cluster=two_ranks", "backend.start_timeout_s=300")
    given = ("+experiment=tool_agent", *ranks, "seed=7", *words)
    with hydra_configs():
        return to_run_config(plain_tree(composed((*given, f"workload.requests={REQUESTS}"))))


def test_those_who_wait_get_what_they_would_have_got(tmp_path: Path) -> None:
    """A third gives up, in queues and in steps; index, slots and memory agree, and the log replays."""
    with live_stack(a_config("cluster.step_tokens=1024"), tmp_path) as stack:
        still = stack.serve("still")
        left = stack.serve("left", clients=lambda engine, fleet: SomeImpatient(engine, fleet, IMPATIENT))
        given_up = left.bodies(RequestCancelled)
        gone = {fact.request_id for fact in given_up}
        # a rank may send somebody who has gone what it made before it heard of that
        stayed = {number: tokens for number, tokens in left.outputs.items() if number not in gone}
        check_outputs(stack, left._replace(outputs=stayed), still)
    check_served(still)
    assert gone and gone <= IMPATIENT and len(given_up) == len(gone)
    assert stayed.keys() == set(range(REQUESTS)) - gone
    ends = {fact.request_id: fact.status for fact in left.bodies(RequestEnded)}
    assert ends == {number: "cancelled" if number in gone else "finished" for number in range(REQUESTS)}
    came = {fact.request.request_id: fact.request.arrival_ns for fact in left.bodies(RequestArrived)}
    assert all(fact.at >= came[fact.request_id] + PATIENCE_NS for fact in given_up)
    begun = {item.request_id for fact in left.bodies(StepStarted) for item in fact.items}
    assert 0 in begun  # computed for nobody, and whole for those who share its prefix


def test_a_live_run_that_everybody_leaves(tmp_path: Path) -> None:
    """From the key to the tables: who is cancelled by its client is missed, and the audit is clean."""
    words = (f"arrival.patience_s={PATIENCE_NS / 1e9}", f"runs_dir={tmp_path}")
    outcome = execute(a_config(*words), Asked(words), Console(file=StringIO()))
    assert outcome.status == "finished"
    run = find_run(tmp_path, outcome.run_id).run
    rows = pq.read_table(run.table("requests")).to_pylist()
    gone = [row for row in rows if row["status"] == "cancelled"]
    assert len(rows) == REQUESTS and gone
    assert {row["status"] for row in rows} <= {"cancelled", "finished"}
    assert all(row["reason"].startswith("by client, ") for row in gone)
    assert {row["slo_met"] for row in gone} == {False}  # also where a token was on its way and came too late
    assert all(row["ttft_s"] is not None for row in rows if row not in gone)
    assert audit_run(run).is_clean
