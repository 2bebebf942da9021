"""The check of ranks' memory: silent while all agree, and it names rank, block and what each side says."""

import re
from io import StringIO
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from tests.serving.test_prefix_operations import PrefixRig
from tests.support.model_memory import ModelMemory
from vertumnus.commandline.hydra_configs import composed, hydra_configs, plain_tree
from vertumnus.config import to_run_config
from vertumnus.domain.errors import InvariantError
from vertumnus.domain.facts import TransferFinished
from vertumnus.domain.units import BlockKey, Rank, SlotId
from vertumnus.run.asked import Asked
from vertumnus.run.session import Recorded, Session, serve_recorded
from vertumnus.run.simulated import required_profile, simulated_requests, virtual_engine
from vertumnus.run.stream import load_stream
from vertumnus.sim.config import SimConfig

LENGTHS = [(n % 3, 2 + (n * 7) % 8, 1 + n % 13) for n in range(60)]
"""Requests of three prefixes."""


def held(rig: PrefixRig) -> list[tuple[Rank, BlockKey, SlotId]]:
    """Every block that a worker holds: rank, key, slot."""
    return [(rank, key, slot) for (rank, key), slot in rig.check.held()]


def a_served_rig() -> PrefixRig:
    """Six workers that hold three prefixes, some of them copied."""
    rig = PrefixRig(1, composition={2: 2, 1: 4})
    rig.run(LENGTHS)
    assert rig.bodies(TransferFinished)
    return rig


def test_a_spoilt_block_is_named() -> None:
    """Other bytes in a rank's slot: rank, block, slot, what is there and what was written."""
    rig = a_served_rig()
    rank, key, slot = held(rig)[3]
    written, rig.memory.slots[slot] = rig.memory.slots[slot], b"spoilt"
    with pytest.raises(InvariantError) as caught:
        rig.check.compare()
    assert str(caught.value).splitlines()[1:] == [
        f"rank {rank}, block {key}, slot {slot}: the rank has {b'spoilt'.hex()}, the step that computed it "
        f"wrote {written.hex()}"
    ]


def test_a_copy_that_brought_nothing_is_found() -> None:
    """A copy that is told done while its slots hold something else stops the run at once."""
    rig = PrefixRig(1, composition={2: 2, 1: 4})
    rig.memory.lost_copies = 1
    with pytest.raises(InvariantError, match="the step that computed it wrote"):
        rig.run(LENGTHS)
    assert len(rig.bodies(TransferFinished)) == 1


def test_an_index_that_says_too_much_or_too_little_is_found() -> None:
    """A holder that was forgotten, and one that is none, are told as what index and worker say."""
    rig = a_served_rig()
    rank, key, slot = held(rig)[0]
    rig.control.index.evict(rank, [key])
    other = next(r for r in range(8) if not rig.control.index.node(key).owners >> r & 1 and r != rank)
    rig.control.index.install((key,), 0, [other])
    with pytest.raises(InvariantError) as caught:
        rig.check.compare()
    assert sorted(str(caught.value).splitlines()[1:]) == sorted(
        [
            f"rank {rank}, block {key}: its worker holds it in slot {slot}, the index does not say so",
            f"rank {other}, block {key}: the index says that it is there, its worker does not hold it",
        ]
    )


def test_slots_that_were_mixed_up_are_found() -> None:
    """Two blocks whose slots a worker took for one another are told with what was written where."""
    rig = a_served_rig()
    blocks = next(w.cache._resident for w in rig.fleet.workers.values() if len(w.cache._resident) > 1)
    (first, a), (second, b) = list(blocks.items())[:2]
    a.slot, b.slot = b.slot, a.slot
    with pytest.raises(InvariantError, match=f"last is block {first}") as caught:
        rig.check.compare()
    assert f"last is block {second}" in str(caught.value)


def test_many_differences_are_counted() -> None:
    """Ten are told one by one, the rest as a number."""
    rig = a_served_rig()
    blocks = len(held(rig))
    rig.memory.slots.clear()
    with pytest.raises(InvariantError, match=rf"\.\.\. and {blocks - 10} more$"):
        rig.check.compare()


def a_recorded_run(tmp_path: Path, lost_copies: int) -> tuple[Recorded, str]:
    """Run 300 requests on a simulated pool with a memory, in which so many copies bring nothing."""
    words = ("+experiment=tool_agent", "backend=sim", "workload.requests=300", f"runs_dir={tmp_path}")
    with hydra_configs():
        config = to_run_config(plain_tree(composed(words)))
    profile, stream = required_profile(config), load_stream(config)
    assert isinstance(config.backend, SimConfig)
    engine = virtual_engine(config, config.backend, profile, stream.block_tokens)
    memory = ModelMemory(engine, stream.block_tokens)
    memory.lost_copies = lost_copies
    requests = simulated_requests(config, profile, stream)
    session = Session(config, Asked(words), profile, stream, requests, memory.digests)
    told = StringIO()
    return serve_recorded(session, memory, Console(file=told, width=200)), told.getvalue()


def test_a_run_says_what_was_compared(tmp_path: Path) -> None:
    """A run without differences ends with the number of checks, one after each copy and one at the end."""
    recorded, told = a_recorded_run(tmp_path, lost_copies=0)
    copies = pq.read_table(recorded.run.table("cache_ops")).to_pylist()
    (line,) = [line for line in told.splitlines() if line.startswith("memory: ")]
    ends = {copy["t_ns"] + round(copy["wait_s"] * 1e9) for copy in copies if copy["wait_s"] is not None}
    assert recorded.end.status == "finished" and ends
    checks = re.search(r"in (\d+) checks", line)
    assert checks is not None and len(ends) < int(checks[1]) <= len(copies) + 1


def test_a_run_fails_where_memory_disagrees(tmp_path: Path) -> None:
    """At the first copy that brings nothing, with its rank and block as the reason."""
    recorded, told = a_recorded_run(tmp_path, lost_copies=1)
    assert recorded.end.status == "failed" and "memory: " not in told
    assert re.search(r"rank \d+, block \d+, slot \d+: the rank has", str(recorded.failure))
