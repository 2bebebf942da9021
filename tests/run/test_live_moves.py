"""The whole live stack under splits and merges: every output as in the undisturbed run."""

import pytest

from tests.support.builders import a_profile
from vertumnus.commandline.hydra_configs import composed, hydra_configs, plain_tree
from vertumnus.config import RunConfig, to_run_config
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.codec import Record
from vertumnus.domain.facts import OperatorActed, RequestEnded, StepStarted, TransferFinished
from vertumnus.domain.orders import CloseTransition
from vertumnus.live.config import LiveConfig
from vertumnus.run.pool import build_pool
from vertumnus.run.stream import load_stream
from vertumnus.serving.loop import Loop
from vertumnus.serving.replay import replay_facts, replay_inputs
from vertumnus.trace.prompts import live_prompts

pytestmark = pytest.mark.live

MOVES = (
    (0.5, "merge", (CpGroup(2, 1), CpGroup(3, 1))),
    (1.0, "merge", (CpGroup(0, 2), CpGroup(2, 2))),
    (1.8, "split", (CpGroup(0, 4),)),
    (2.4, "split", (CpGroup(2, 2),)),
)


def a_config() -> RunConfig:
    """A hundred requests of the tool-agent trace for four nano ranks that may form every degree."""
    words = ("+experiment=tool_agent", "model=nano", "workload.requests=100", "cluster.degrees=[1,2,4]")
    with hydra_configs():
        return to_run_config(plain_tree(composed(words)))


def serve(config: RunConfig, moves) -> tuple[dict[int, tuple[int, ...]], list[Record]]:
    """Serve the config's requests on live ranks, asking for *moves*; return outputs and the log."""
    from vertumnus.live.engine import LiveEngine
    from vertumnus.live.plan import make_plan

    assert isinstance(config.backend, LiveConfig) and config.model is not None
    stream = load_stream(config)
    rows = [row._replace(arrival_ns=place * 30_000_000) for place, row in enumerate(stream.rows)]
    prompts = list(
        live_prompts(
            rows,
            vocab_size=config.model.vocab_size,
            block_tokens=stream.block_tokens,
            seed=0,
            token_scale=config.workload.token_scale,
        )
    )
    tokens = {prompt.request.request_id: prompt.tokens for prompt in prompts}
    outputs: dict[int, tuple[int, ...]] = {}

    def keep(request_id: int, made: tuple[int, ...]) -> None:
        outputs[request_id] = outputs.get(request_id, ()) + made

    plan = make_plan(config.model, config.backend, config.cluster, stream.block_tokens, config.seed)
    engine = LiveEngine(plan, tokens.__getitem__, keep)
    pool = build_pool(config, a_profile(), stream.block_tokens)
    log: list[Record] = []
    try:
        engine.start()
        engine.start_clock()
        for number, (at_s, kind, groups) in enumerate(moves):
            at_ns = round(at_s * 1e9)
            engine.schedule(OperatorActed(at_ns, number, "test", kind, groups), at_ns)
        loop = Loop(engine, pool.fleet, pool.control, lambda source, body: log.append(Record(source, body)))
        loop.serve(prompt.request for prompt in prompts)
    finally:
        engine.close()
    assert pool.books().problems == ()
    again = [build_pool(config, a_profile(), stream.block_tokens) for _ in range(2)]
    assert replay_facts(log, again[0].control) is None
    assert replay_inputs(log, again[1].fleet, again[1].control) is None
    return outputs, log


def test_outputs_are_those_of_the_undisturbed_run() -> None:
    """Four moves under load change no token and lose no request, and the live log replays exactly."""
    config = a_config()
    moved, log = serve(config, MOVES)
    bodies = [record.body for record in log]
    still, _ = serve(config, ())
    assert moved == still and len(moved) == 100
    ends = [body for body in bodies if isinstance(body, RequestEnded)]
    assert {end.status for end in ends} == {"finished"}
    closed = [body for body in bodies if isinstance(body, CloseTransition)]
    assert [order.outcome for order in closed] == ["committed"] * 4
    degrees = {body.worker.degree for body in bodies if isinstance(body, StepStarted)}
    assert {2, 4} <= degrees
    hits = [i.cached_tokens for b in bodies if isinstance(b, StepStarted) and b.epoch for i in b.items]
    assert any(hits), "no prefix survived a move"
    assert all(body.owners for body in bodies if isinstance(body, TransferFinished))
