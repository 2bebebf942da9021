"""What operators ask for, and who in the control plane sees to it; every wish gets one Answer."""

from collections.abc import Callable, Mapping

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.facts import OperatorActed
from vertumnus.domain.orders import Answer, AnyOrder
from vertumnus.domain.units import BlockKey
from vertumnus.domain.wording import counted
from vertumnus.policy.composer import Composer
from vertumnus.policy.prefix.by_hand import PrefixHand
from vertumnus.policy.reconfig.holds import Holds
from vertumnus.policy.tuning import Tuning, Value


class Operators:
    """Takes wishes one after the other, so that two operators at once get a consistent result."""

    def __init__(self, composer: Composer, holds: Holds, prefixes: PrefixHand, tuning: Tuning) -> None:
        self._composer = composer
        self._holds = holds
        self._prefixes = prefixes
        self._tuning = tuning
        self._handlers: dict[str, Callable[[OperatorActed], list[AnyOrder]]] = {
            **dict.fromkeys(("split", "merge", "auto", "manual", "off"), composer.operator_acted),
            "drain": self._drain,
            "reopen": self._reopen,
            "copy": self._copy,
            "reclaim": self._reclaim,
            "tune": self._tune,
            "undo": self._undo,
            "speed": self._speed,
        }

    def acted(self, fact: OperatorActed) -> list[AnyOrder]:
        """Answer *fact*, and do what it asks for when it is legal."""
        try:
            self._check_workers(fact)
            return self._handlers[fact.action](fact)
        except ConfigError as error:
            return [Answer(fact.action_id, False, str(error))]

    def settings(self) -> Mapping[str, Value]:
        """Return the parameters that can be tuned, with their values now."""
        return self._tuning.settings()

    def _check_workers(self, fact: OperatorActed) -> None:
        """Raise ConfigError for a worker that cannot be: what is legal now is each handler's to say."""
        lattice = self._composer.lattice
        for worker in fact.workers:
            if not lattice.has_place_for(worker):
                raise ConfigError(
                    f"{fact.action} {worker}: no such worker can be; one is <first rank>x<degree>, "
                    f"aligned ranks of 0 to {lattice.gpus - 1}"
                )

    def _drain(self, fact: OperatorActed) -> list[AnyOrder]:
        orders = self._holds.drain(_one(fact), fact.who, self._composer.busy)
        return [Answer(fact.action_id, True, ""), *orders]

    def _reopen(self, fact: OperatorActed) -> list[AnyOrder]:
        return [Answer(fact.action_id, True, ""), *self._holds.reopen(_one(fact))]

    def _copy(self, fact: OperatorActed) -> list[AnyOrder]:
        order = self._prefixes.copy(_prefix(fact), _one(fact), fact.at)
        blocks = len(order.path) - order.first_block
        return [Answer(fact.action_id, True, f"{blocks} of {counted(len(order.path), 'block')}"), order]

    def _reclaim(self, fact: OperatorActed) -> list[AnyOrder]:
        order = self._prefixes.reclaim(_prefix(fact), _one(fact), fact.at)
        return [Answer(fact.action_id, True, counted(len(order.keys), "block")), order]

    def _tune(self, fact: OperatorActed) -> list[AnyOrder]:
        return [Answer(fact.action_id, True, str(self._tuning.change(fact.setting, fact.value, fact.who)))]

    def _undo(self, fact: OperatorActed) -> list[AnyOrder]:
        return [Answer(fact.action_id, True, str(self._tuning.undo(fact.who)))]

    def _speed(self, fact: OperatorActed) -> list[AnyOrder]:
        # the pace is the engine's; here it only gets its place in the log
        return [
            Answer(
                fact.action_id,
                True,
                f"{fact.value:g}x" if isinstance(fact.value, int | float) else "as it is",
            )
        ]


def _prefix(fact: OperatorActed) -> BlockKey:
    """Return the last block of the prefix that a wish is for. Raises ConfigError when it names none."""
    if type(fact.value) is not int:
        raise ConfigError(
            f"{fact.action}: found {fact.value!r}, it takes the number of a prefix's last block"
        )
    return fact.value


def _one(fact: OperatorActed) -> CpGroup:
    """Return the one worker of a wish. Raises ConfigError when it names none or several."""
    if len(fact.workers) != 1:
        raise ConfigError(f"{fact.action}: found {counted(len(fact.workers), 'worker')}, it takes 1")
    return fact.workers[0]
