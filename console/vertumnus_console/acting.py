"""The screen of an operator: what changes the run. The run checks every action and answers it."""

from collections.abc import Callable
from concurrent.futures import Future
from functools import cached_property
from time import monotonic
from typing import TypeVar

from textual.events import Key as KeyPress

from vertumnus.config import to_run_config
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.facts import Action
from vertumnus.domain.move import Direction
from vertumnus.domain.units import BlockKey
from vertumnus.policy.reconfig.mode import Mode, configured_mode
from vertumnus_console.desk import Link, Wish
from vertumnus_console.dialogs.confirm import ConfirmMove, Matter
from vertumnus_console.dialogs.parameters import Parameters, Setting
from vertumnus_console.dialogs.places import ChoosePlace
from vertumnus_console.keymap import key_names
from vertumnus_console.keys import KEYS, Key
from vertumnus_console.looks.places import Place, copy_places, reclaim_places
from vertumnus_console.offering import NEEDS, Standing, as_it_is, held, is_offered
from vertumnus_console.panes.cluster import ClusterPane
from vertumnus_console.panes.trie import TriePane
from vertumnus_console.panes.workers import WorkersPane
from vertumnus_console.player import Player, Snapshot
from vertumnus_console.preview import preview, question
from vertumnus_console.replay import Replay
from vertumnus_console.saving import saved
from vertumnus_console.screen import RunScreen

_T = TypeVar("_T")


class OperatorScreen(RunScreen):
    """Adds splits, merges, drains, modes, parameters and speed to what can be seen."""

    _speed_before_hold = 1.0

    def offered(self) -> list[Key]:
        """Return the keys of the key line: those that do something now."""
        standing = Standing(self.desk, self.drawn, self.pane, self.selected, self._configured)
        return [as_it_is(key, standing) for key in super().offered() if is_offered(key.name, standing)]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether *action* exists here: a read-only console has none that changes the run."""
        if self.desk.link is not Link.READ_ONLY:
            return True
        is_speed = action == "speed" and self.drawn is not None and self.drawn.is_live
        return action not in NEEDS and not is_speed

    def on_key(self, event: KeyPress) -> None:
        """Say why a key does nothing."""
        if not event.is_printable or event.character is None:
            return
        name = next((key.name for key in KEYS if event.key in self._keys(key)), None)
        if name is None:
            pressed = event.key if "+" in event.key else event.character  # alt+x is no x
            self.say(f"{pressed}: no such key here; ? lists them")
        elif self.desk.link is Link.READ_ONLY:
            self.say(f"{event.character}: {name} changes the run; this console was started with --read-only")

    def told(self, before: Snapshot | None, now: Snapshot) -> None:
        """Say what operators did since, and what was refused; the run's end is said last."""
        for refusal in self.feed.refusals():
            self.say(f"refused: {refusal}", "error")
        read = {act.action_id for act in now.view.acts}
        new = [act for act in self.feed.answers() if act.action_id not in read]
        if before is not None and _is_news(before) and _is_news(now):
            new += now.view.acts[_shared(before, now) :]
        if new:
            self.say(str(new[-1]), "" if new[-1].accepted else "error")
        super().told(before, now)

    @cached_property
    def _configured(self) -> Mode:
        """The mode that the run was started with."""
        return configured_mode(to_run_config(self.shown.header.config).controller)

    # ---- actions --------------------------------------------------------------------------------

    def action_split(self) -> None:
        """Ask whether the selected worker shall be split."""
        self._confirm("split", lambda worker: (worker,))

    def action_merge(self) -> None:
        """Ask whether the selected worker shall be merged with its sibling."""
        self._confirm("merge", lambda worker: tuple(sorted((worker, worker.sibling))))

    def action_drain(self) -> None:
        """Take the selected worker out of routing, or back."""
        worker = self._selected_worker("drain") if self._may("drain") else None
        if worker is None or self.drawn is None:
            return
        self._act(Wish("reopen" if worker in held(self.drawn.view) else "drain", (worker,)))

    def action_auto(self) -> None:
        """Let the controller move workers, whatever became of the mode since the screen was drawn."""
        if self._may("auto"):
            self._act(Wish("auto"))

    def action_manual(self) -> None:
        """Take the composition from the controller."""
        if self._may("manual"):
            self._act(Wish("manual"))

    def action_freeze(self) -> None:
        """Let nobody move workers, or operators again."""
        if self._may("off") and self.drawn is not None:
            self._act(Wish("manual" if self.drawn.view.mode == "off" else "off"))

    def action_copy(self) -> None:
        """Ask where the prefix under the cursor shall be copied to."""
        self._choose_place("copy", lambda replay, key: copy_places(replay, key, replay.now_ns or 0))

    def action_reclaim(self) -> None:
        """Ask where the prefix under the cursor shall be deleted."""
        self._choose_place("reclaim", reclaim_places)

    def action_parameters(self) -> None:
        """Open the parameters."""
        if not self._may("tune") or self.drawn is None:
            return
        if not self.drawn.view.settings:
            self.say("no parameter of this policy and controller can be changed live")
            return
        self.app.push_screen(Parameters(self.drawn.view.settings), self._set)

    def action_undo(self) -> None:
        """Take the last change of a parameter back."""
        if self._may("undo"):
            self._act(Wish("undo"))

    def action_speed(self, factor: float) -> None:
        """Let a paced run, or the playing of another, go *factor* times as fast."""
        if self.drawn is None:
            return
        if not self.drawn.is_live:
            self._play_at(self.drawn.speed * factor)
        elif self.drawn.view.speed is None:
            self.say("an executed run keeps real time; replays and paced runs have a speed")
        elif self._may("speed"):
            self._act(Wish("speed", value=(self.drawn.view.speed or self._speed_before_hold) * factor))

    def action_hold(self) -> None:
        """Hold a paced run, or let it go on."""
        if not self._may("speed") or self.drawn is None or self.drawn.view.speed is None:
            return
        speed = self.drawn.view.speed
        if speed:
            self._speed_before_hold = speed
        self._act(Wish("speed", value=0.0 if speed else self._speed_before_hold))

    def action_save(self) -> None:
        """Write what is seen to files beside each other."""
        told = saved(self.app, self.shown.run_id)
        self.say(told.text, "" if told.is_done else "error")

    # ---- how ------------------------------------------------------------------------------------

    def _keys(self, key: Key) -> list[str]:
        return key_names(self.keys_of.get(key.name, key.keys))

    def _may(self, action: Action) -> bool:
        """Return whether the run takes *action* now; if not, say what to do."""
        if action in self.desk.actions:
            if self.desk.problem:
                # whatever is sent now would be done when it goes on, once for every time that it was pressed
                self.say(f"{action}: not sent, the run gives {self.desk.problem}; is it stopped?", "error")
            return not self.desk.problem
        if self.desk.link is Link.LOST:
            self.say(f"{action}: not connected ({self.desk.problem}); trying again every second", "error")
        elif self.desk.link is Link.NONE:
            self.say(f"{action}: the run has ended, nothing can be changed; left and right go through it")
        else:
            self.say(f"{action}: this run does not take it", "error")
        return False

    def _selected_worker(self, action: Action) -> CpGroup | None:
        if self._is_past(action):
            return None
        if not isinstance(self.pane, ClusterPane | WorkersPane):
            self.say(f"{action}: select a worker on the overview (o) or among the workers (w)")
            return None
        if self.selected is None:
            self.say(f"{action}: select a worker first: up and down, or b for the busiest")
        return self.selected

    def _is_past(self, action: Action) -> bool:
        """Return whether what is shown of a live run is not its present; if so, say what to do."""
        drawn = self.drawn
        if drawn is None or not drawn.is_live or (drawn.follows and drawn.end_ns is not None):
            return False
        if drawn.follows:
            self.say(f"{action}: the log is still being read up to now; try again in a moment")
        else:
            self.say(f"{action}: what you see is past; end goes back to now, where things can be changed")
        return True

    def _confirm(self, kind: Direction, workers_of: Callable[[CpGroup], tuple[CpGroup, ...]]) -> None:
        """Show what *kind* of the selected worker would do; while the run goes, ask whether to do it."""
        is_asked = self.desk.link is not Link.NONE
        worker = self._selected_worker(kind) if not is_asked or self._may(kind) else None
        if worker is None:
            return
        workers = workers_of(worker)

        def decided(wanted: bool | None) -> None:
            if wanted:
                self._act(Wish(kind, workers))

        def asked(what: Callable[[Player, Direction, tuple[CpGroup, ...]], _T]) -> Callable[[], Future[_T]]:
            return lambda: self.feed.answer(
                lambda player: what(player, kind, workers), once_there=not is_asked
            )

        matter = Matter(
            f"{kind} {' + '.join(map(str, workers))}{'?' if is_asked else ''}",
            asked(preview),
            asked(question),
            lambda: self.desk.link is not Link.NONE,
        )
        self.app.push_screen(ConfirmMove(matter), decided)

    def _choose_place(
        self, action: Action, places_of: Callable[[Replay, BlockKey], tuple[Place, ...]]
    ) -> None:
        pane = self.pane
        if not self._may(action) or self._is_past(action):
            return
        if not isinstance(pane, TriePane) or (key := pane.pointed) is None:
            self.say(f"{action}: go to the trie (t) and put the cursor on a prefix")
            return

        def decided(worker: CpGroup | None) -> None:
            if worker is not None:
                self._act(Wish(action, (worker,), value=key))

        def choose(places: tuple[Place, ...]) -> None:
            title = f"{action} prefix {key} {'to' if action == 'copy' else 'at'}"
            self.app.push_screen(ChoosePlace(title, places), decided)

        self.ask(lambda player: places_of(player.replay, key), choose)

    def _set(self, setting: Setting | None) -> None:
        if setting is not None:
            self._act(Wish("tune", setting=setting.name, value=setting.value))

    def _play_at(self, speed: float) -> None:
        self.feed.ask(lambda player: player.set_speed(speed, monotonic()))
        self.say(f"replays play at {speed:g}x now")

    def _act(self, wish: Wish) -> None:
        self.say(f"{wish.action} ...")
        self.feed.act(wish)


def _is_news(snapshot: Snapshot) -> bool:
    """Return whether what is new there has just happened: it is the end, of a log that was read up to it."""
    return snapshot.follows and snapshot.end_ns is not None


def _shared(before: Snapshot, now: Snapshot) -> int:
    """Return how many of the acts of *now* were there *before*."""
    if not before.view.acts:
        return 0
    last = before.view.acts[-1]
    return next((place + 1 for place, act in enumerate(now.view.acts) if act == last), 0)
