"""A control plane on `a_cluster`, told facts by hand and audited after each."""

from tests.support.builders import a_control_plane, a_prefill_time, a_request
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.facts import (
    AnyFact,
    Evicted,
    Installed,
    OperatorActed,
    RequestArrived,
    RequestEnded,
    StepFinished,
    StepItem,
    StepStarted,
)
from vertumnus.domain.orders import Answer, AnyOrder, Prefill
from vertumnus.domain.request import Request
from vertumnus.policy.config import (
    CacheConfig,
    PolicyConfig,
)
from vertumnus.policy.placement import Decision
from vertumnus.workers.config import ClusterConfig

PAIR, LEFT, RIGHT = CpGroup(0, 2), CpGroup(2, 1), CpGroup(3, 1)
PREDICT = a_prefill_time().predict
KEYS = tuple(range(1, 9))
"""A prompt of eight blocks, 128 tokens."""


class Rig:
    """A control plane on `a_cluster`, told facts by hand and audited after each."""

    def __init__(
        self,
        policy: PolicyConfig | None = None,
        cluster: ClusterConfig | None = None,
        cache: CacheConfig | None = None,
        longest_prompt: int | None = None,
    ) -> None:
        self.decisions: list[Decision] = []
        self.control = a_control_plane(
            cluster, policy, cache, observe=self.decisions.append, longest_prompt=longest_prompt
        )
        self.now = 0

    def tell(self, fact: AnyFact) -> list[AnyOrder]:
        orders = self.control.handle(fact)
        self.control.check()
        return orders

    def arrive(self, request: Request) -> AnyOrder:
        (order,) = self.tell(RequestArrived(self.now, request))
        return order

    def start(self, order: Prefill, cached: int = 0, evicted: tuple[Evicted, ...] = ()) -> None:
        item = StepItem(order.request_id, order.attempt, cached)
        assert self.tell(StepStarted(self.now, order.request_id, order.worker, 0, (item,), evicted)) == []

    def finish(self, order: Prefill, first_block: int = 0, owners: tuple[int, ...] | None = None) -> None:
        installed = Installed(order.request_id, first_block, owners)
        assert self.tell(StepFinished(self.now, order.request_id, order.worker, 7, (installed,))) == []

    def end(self, request_id: int) -> None:
        self.tell(RequestEnded(self.now, request_id, "finished", 4))

    def serve(self, request: Request, cached: int = 0) -> Prefill:
        """Let a request arrive and pass through its step and its end."""
        order = self.arrive(request)
        self.start(order, cached)
        self.finish(order, cached // 16)
        self.end(request.request_id)
        return order

    def seed(self, worker: CpGroup, keys: tuple[int, ...] = KEYS) -> None:
        """Let *worker* alone hold *keys*, each block on rank first + i mod C."""
        self.control.index.install(keys, 0, [worker.first_rank + i % worker.degree for i in range(len(keys))])


class Desk(Rig):
    """A rig that is told wishes."""

    wishes = 0

    def wish(self, action: str, *workers: CpGroup, setting: str = "", value=None, who: str = "ann") -> list:
        """Return the orders that follow, the answer first."""
        self.wishes += 1
        orders = self.tell(OperatorActed(self.now, self.wishes, who, action, workers, setting, value))
        answers = [order for order in orders if isinstance(order, Answer)]
        assert [answer.action_id for answer in answers] == [self.wishes] and orders[0] is answers[0]
        return orders

    def refusal(self, action: str, *workers: CpGroup, **more) -> str:
        """Return why a wish is refused; nothing else follows."""
        (answer,) = self.wish(action, *workers, **more)
        assert not answer.accepted
        return answer.reason


def a_long_hit(request_id: int, extra: int = 8) -> Request:
    """A prompt of the eight blocks and some tokens more."""
    return a_request(request_id, input_tokens=128 + extra, block_keys=KEYS)
