"""Small things to test with; every argument has a default."""

from collections.abc import Callable, Iterator

from vertumnus.domain.prefill_time import Coefficients, PrefillTimeModel
from vertumnus.domain.profile import ModelProfile
from vertumnus.domain.request import Request
from vertumnus.policy.admission import Admission
from vertumnus.policy.config import CacheConfig, PaperPolicy, PolicyConfig
from vertumnus.policy.control_plane import ControlPlane
from vertumnus.policy.correction import CorrectionConfig
from vertumnus.policy.placement import Decision, Observer
from vertumnus.policy.reconfig.config import ControllerConfig
from vertumnus.records.request_record import Ending, RequestRecord
from vertumnus.workers.config import ClusterConfig, DecodeConfig

BLOCK_TOKENS = 16


def a_request(
    request_id: int = 0,
    arrival_ns: int = 0,
    input_tokens: int = 40,
    output_tokens: int = 4,
    block_keys: tuple[int, ...] | None = None,
) -> Request:
    """A request whose content is its own unless *block_keys* says otherwise."""
    if block_keys is None:
        whole = input_tokens // BLOCK_TOKENS
        block_keys = tuple(range(1_000_000 + 1_000 * request_id, 1_000_000 + 1_000 * request_id + whole))
    return Request(request_id, arrival_ns, input_tokens, output_tokens, block_keys)


def a_profile(degrees: tuple[int, ...] = (1, 2, 4)) -> ModelProfile:
    """A profile with round numbers."""
    return ModelProfile(
        model="toy",
        hardware="none",
        provenance="made up for tests",
        degrees=degrees,
        prefill=Coefficients(
            startup_s=0.01,
            per_uncached_s=1e-5,
            per_cached_s=1e-6,
            divided_per_uncached_s=1e-4,
            divided_per_pair_s=1e-8,
            per_doubling_s=0.002,
        ),
        handoff_base_s=0.001,
        handoff_per_token_s=1e-6,
        decode_step_s=0.002,
        kv_bytes_per_token=1024,
    )


def a_prefill_time(degrees: tuple[int, ...] = (1, 2, 4)) -> PrefillTimeModel:
    """E_C(R, P) of `a_profile`."""
    return a_profile(degrees).prefill_time()


def a_cluster(
    composition: dict[int, int] | None = None,
    blocks_per_rank: int = 64,
    decode: DecodeConfig | None = None,
    step_tokens: int = 0,
    handoff_share: float = 0.25,
    max_attempts: int = 3,
    degrees: tuple[int, ...] | None = None,
) -> ClusterConfig:
    """One degree-2 worker beside two degree-1 workers, unless *composition* says otherwise."""
    counts = composition or {1: 2, 2: 1}
    return ClusterConfig(
        gpus=sum(degree * count for degree, count in counts.items()),
        degrees=degrees or tuple(sorted(counts)),
        composition=counts,
        ranks_per_node=8,
        blocks_per_rank=blocks_per_rank,
        decode=decode or DecodeConfig(ranks=1, slots_per_rank=8, tokens_per_rank=10_000),
        step_tokens=step_tokens,
        handoff_share=handoff_share,
        max_attempts=max_attempts,
    )


def a_control_plane(
    cluster: ClusterConfig | None = None,
    policy: PolicyConfig | None = None,
    cache: CacheConfig | None = None,
    observe: Callable[[Decision], None] | None = None,
    controller: ControllerConfig | None = None,
    kappa: dict[int, float] | None = None,
    correction: CorrectionConfig | None = None,
    admission: Admission | None = None,
    prefill_time: PrefillTimeModel | None = None,
    longest_prompt: int | None = None,
) -> ControlPlane:
    """A control plane of *cluster* over the profile's times, or others."""
    cluster = cluster or a_cluster()
    return ControlPlane(
        policy or PaperPolicy(),
        cache or CacheConfig(),
        cluster.initial_composition(),
        prefill_time or a_prefill_time(),
        block_tokens=BLOCK_TOKENS,
        blocks_per_rank=cluster.blocks_per_rank,
        max_attempts=cluster.max_attempts,
        lattice=cluster.lattice,
        link=cluster.link,
        block_bytes=1024 * BLOCK_TOKENS,
        longest_prompt=longest_prompt,
        controller=controller,
        kappa=kappa,
        correction=correction,
        admission=admission,
        observer=None if observe is None else Observer(observe),
    )


def shared_prefix_requests(lengths: list[tuple[int, int, int]], gap_ns: int = 5_000_000) -> Iterator[Request]:
    """Requests from (family, blocks, extra tokens): those of a family share their leading blocks."""
    for number, (family, blocks, extra) in enumerate(lengths):
        keys = tuple(family * 100 + depth for depth in range(blocks))
        yield Request(number, number * gap_ns, blocks * BLOCK_TOKENS + extra, 1 + number % 5, keys)


def a_record(
    request_id: int = 0,
    status: Ending = "finished",
    ttft_ns: int | None = 1_000_000,
    input_tokens: int = 40,
    slo_met: bool | None = None,
) -> RequestRecord:
    """A request as a run leaves it behind, with what metrics look at; the rest is unknown."""
    known: dict[str, object] = dict.fromkeys(RequestRecord.__struct_fields__)
    known |= {"request_id": request_id, "arrival_ns": request_id, "t_ns": request_id, "attempts": 1}
    known |= {"placements": 1, "status": status, "ttft_ns": ttft_ns, "input_tokens": input_tokens}
    return RequestRecord(**known | {"slo_met": slo_met})  # type: ignore[arg-type]
