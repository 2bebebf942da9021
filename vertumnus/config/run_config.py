"""All that a run may be told: the components' configs put together."""

from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from vertumnus.domain.profile import ModelProfile
from vertumnus.live.config import LiveConfig, ModelConfig
from vertumnus.policy.admission import AdmissionConfig
from vertumnus.policy.config import CacheConfig, PolicyConfig
from vertumnus.policy.correction import CorrectionConfig
from vertumnus.policy.reconfig.config import ControllerConfig, ManualController
from vertumnus.records.config import RecordsConfig
from vertumnus.sim.config import SimConfig
from vertumnus.trace.config import ArrivalConfig, SloConfig, WorkloadConfig
from vertumnus.trace.history import GivenComposition, InitialConfig
from vertumnus.workers.config import ClusterConfig

BackendConfig: TypeAlias = SimConfig | LiveConfig


class RunConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One run, complete: the same config, seed and version give the same simulated run."""

    name: str
    """What reports call the run; experiments name themselves."""
    purpose: str
    """What the run is for, in one line."""
    backend: BackendConfig
    """Who carries out the orders: the simulator or this machine's ranks."""
    cluster: ClusterConfig
    """The prefill pool, its first composition, and the decode pool."""
    profile: ModelProfile | None
    """Prefill-time model and hand-off costs; null measures this machine at start (live only)."""
    model: ModelConfig | None
    """The model that the live ranks compute; null when simulating, where the profile stands for it."""
    workload: WorkloadConfig
    """Which requests."""
    arrival: ArrivalConfig
    """When they arrive."""
    slo: SloConfig
    """What they were promised."""
    policy: PolicyConfig
    """Who places them."""
    cache: CacheConfig
    """How the prefix index ages its statistics."""
    records: RecordsConfig
    """What is measured and kept."""
    admission: AdmissionConfig = AdmissionConfig()
    """Who is let in, by predicted TTFT."""
    correction: CorrectionConfig = CorrectionConfig()
    """How observed prefill times correct the profile's predictions."""
    controller: ControllerConfig = ManualController()
    """Who changes the composition."""
    initial: InitialConfig = GivenComposition()
    """Where the first composition comes from: the cluster's own, or a historical slice."""
    seed: int = 0
    """Of generators, arrivals, weights and simulated noise, at least 0."""
    runs_dir: str = "runs"
    """Folder that holds one folder for each run."""


def plain_config(config: RunConfig) -> dict[str, Any]:
    """Return *config* as plain values, as runs store it: all but where results go."""
    plain: dict[str, Any] = msgspec.to_builtins(config, str_keys=True)
    del plain["runs_dir"]
    return plain
