"""The whole stack on live ranks of a test: engine, fleet, control plane, log; one start, several runs."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from tests.support.builders import a_profile
from tests.support.recorded import a_header
from tests.support.slot_witness import SlotWitness
from vertumnus.config import RunConfig
from vertumnus.domain.codec import Body
from vertumnus.domain.profile import ModelProfile
from vertumnus.domain.request import Request
from vertumnus.domain.units import Nanoseconds, RequestId
from vertumnus.live.config import LiveConfig
from vertumnus.live.engine import LiveEngine
from vertumnus.live.plan import make_plan
from vertumnus.records.log import LogWriter, read_log
from vertumnus.run.memory_check import MemoryCheck
from vertumnus.run.pool import Pool, build_pool
from vertumnus.run.session import schedule_script
from vertumnus.run.stream import load_stream
from vertumnus.serving.engine import Engine
from vertumnus.serving.follow_ups import FollowUps
from vertumnus.serving.loop import Loop
from vertumnus.serving.replay import replay_facts, replay_inputs
from vertumnus.trace.prompts import Prompt, live_prompts
from vertumnus.workers.fleet import Fleet

GAP_NS = 100_000
"""Time to the next arrival for the square of the open requests: a few dozen are open on any machine."""


START_S = 300.0
"""How long ranks may take to come up [s]."""

TIMES_AGAIN = 30
"""A run that waits for what should take all of its prompts once is given up after so many times as many."""


class Turn(NamedTuple):
    """Who arrives next."""

    request: RequestId
    wait_ns: Nanoseconds = 0
    """On top of `GAP_NS`, and longer as that is while requests are open."""


class Script(Protocol):
    """Chooses who arrives by what has happened."""

    def note(self, body: Body) -> None:
        """Take what the log is told."""

    def turns(self) -> Iterator[Turn]:
        """Yield who arrives; asked for the next one when the last one has arrived."""


AfterEvent = Callable[[LiveEngine, Pool, Loop], bool]
"""Called between events; returns whether requests are to arrive on."""


class Served(NamedTuple):
    """What a run left behind."""

    outputs: dict[int, tuple[int, ...]]
    """Tokens by request."""
    log: Path
    witness: SlotWitness
    block_tokens: int
    check: MemoryCheck
    """Has held the ranks' memory against the books after each operation, and at the end."""

    def bodies(self, *kinds: type) -> list[Body]:
        """Return what the log says of some kinds, in order."""
        return [record.body for record in read_log(self.log).records if isinstance(record.body, kinds)]


class LiveStack:
    """A live engine that is up, and the prompts that it may be asked for."""

    def __init__(self, config: RunConfig, folder: Path, profile: ModelProfile) -> None:
        """Prepare for the requests of *config*; logs go into *folder*."""
        assert isinstance(config.backend, LiveConfig) and config.model is not None
        stream = load_stream(config)
        self._config = config
        self._folder = folder
        self._profile = profile
        self._block_tokens = stream.block_tokens
        self.prompts: list[Prompt] = _prompts(config, stream.block_tokens)
        self._original: dict[RequestId, RequestId] = {}
        self._outputs: dict[int, tuple[int, ...]] = {}
        backend = replace(config.backend, start_timeout_s=START_S)
        plan = make_plan(config.model, backend, config.cluster, stream.block_tokens, config.seed)
        self.engine = LiveEngine(plan, lambda request: self.prompts[request].tokens, self._keep)

    def repeat(self, requests: int) -> None:
        """Let the first *requests* prompts be asked for again, `TIMES_AGAIN` times, by requests of their own.

        For runs that go on until something has happened, however long a slow machine takes for it.
        """
        prompts = self.prompts[:requests]
        for _ in range(TIMES_AGAIN):
            first = len(self.prompts)
            for number, prompt in enumerate(prompts):
                request = replace(prompt.request, request_id=first + number)
                self.prompts.append(prompt._replace(request=request))
                self._original[first + number] = number

    def original(self, request: RequestId) -> RequestId:
        """Return the request that had this one's prompt first."""
        return self._original.get(request, request)

    def serve(
        self,
        name: str,
        after_event: AfterEvent | None = None,
        *,
        uncached: bool = False,
        script: Script | None = None,
        clients: Callable[[Engine, Fleet], Engine] | None = None,
        follow_ups: FollowUps | None = None,
    ) -> Served:
        """Serve the prompts on a pool as it is at the start of a run; its log is replayed afterwards.

        The workers must be those of the first composition. *uncached*: no prompt says what it shares.
        Prompts arrive in order unless a *script* chooses, and *follow_ups* after what they continue; they are
        waited for unless *clients* do not.
        """
        self._outputs = {}
        pool = self._pool()
        witness = self.witness = SlotWitness(
            self.engine, {p.request.request_id: p.request for p in self.prompts}
        )
        log = LogWriter(self._folder / f"{name}.log", a_header("live"))
        cluster = self._config.cluster
        check = MemoryCheck(witness, self.engine.digests, pool, self._block_tokens, cluster.blocks_per_rank)
        script = script or InOrder(len(self.prompts))

        def record(source: int, body: Body) -> None:
            script.note(body)
            log.append(source, body)

        engine = check if clients is None else clients(check, pool.fleet)
        loop = Loop(engine, pool.fleet, pool.control, check.noting(record), follow_ups=follow_ups)
        requests = [replace(p.request, block_keys=None) if uncached else p.request for p in self.prompts]
        feed = _Feed(self.engine, loop, requests, script)
        schedule_script(self._config.controller, self.engine)

        def look() -> None:
            check.after_event()
            feed.is_open = after_event is None or (feed.is_open and after_event(self.engine, pool, loop))

        loop.serve(iter(feed), look)
        check.compare()
        log.close()
        books = pool.books()
        assert (books.problems, books.ledger_ns, books.pinned_blocks) == ((), 0, 0)
        assert books.blocks_in_use == books.blocks_held
        served = Served(self._outputs, self._folder / f"{name}.log", witness, self._block_tokens, check)
        self._check_replay(served)
        return served

    def _pool(self) -> Pool:
        longest = max(prompt.request.input_tokens for prompt in self.prompts)
        return build_pool(self._config, self._profile, self._block_tokens, longest)

    def _check_replay(self, served: Served) -> None:
        """Fail unless both replays of the log give what the run did."""
        assert replay_facts(read_log(served.log).records, self._pool().control) is None
        again = self._pool()
        assert replay_inputs(read_log(served.log).records, again.fleet, again.control) is None

    def _keep(self, request_id: int, made: tuple[int, ...]) -> None:
        self._outputs[request_id] = self._outputs.get(request_id, ()) + made


@contextmanager
def live_stack(config: RunConfig, folder: Path, profile: ModelProfile | None = None) -> Iterator[LiveStack]:
    """Yield a stack whose ranks are up; everything is stopped afterwards."""
    stack = LiveStack(config, folder, profile or a_profile())
    try:
        stack.engine.start()
        stack.engine.start_clock()
        yield stack
    finally:
        stack.engine.close()


def _prompts(config: RunConfig, block_tokens: int) -> list[Prompt]:
    assert config.model is not None
    return list(
        live_prompts(
            load_stream(config).rows,
            vocab_size=config.model.vocab_size,
            block_tokens=block_tokens,
            seed=config.seed,
            token_scale=config.workload.token_scale,
        )
    )


class InOrder:
    """Everybody, one after the other."""

    def __init__(self, requests: int, gap_ns: Nanoseconds = 0) -> None:
        """Each arrives *gap_ns* later than it would."""
        self._requests, self._gap_ns = requests, gap_ns

    def note(self, body: Body) -> None:
        """Nothing that happens matters."""

    def turns(self) -> Iterator[Turn]:
        """Yield all."""
        for request in range(self._requests):
            yield Turn(request, self._gap_ns)


class _Feed:
    """Requests that arrive the later the more are open, until it is closed."""

    def __init__(self, engine: LiveEngine, loop: Loop, requests: Sequence[Request], script: Script) -> None:
        self.is_open = True
        self._engine, self._loop, self._requests, self._script = engine, loop, requests, script

    def __iter__(self) -> Iterator[Request]:
        for turn in self._script.turns():
            if not self.is_open:
                return
            open_requests = self._loop.arrived - self._loop.ended
            wait_ns = (GAP_NS + turn.wait_ns) * open_requests**2
            yield replace(self._requests[turn.request], arrival_ns=self._engine.now() + wait_ns)
