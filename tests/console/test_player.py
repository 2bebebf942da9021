"""What a replay shows at an instant is what the run's tables say of it."""

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from tests.support.builders import a_request
from tests.support.consoles import GrowingRun, settled
from tests.support.recorded import a_header
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.codec import FACT, INPUT, Record
from vertumnus.domain.facts import DecodeRankLost, RankLost, RequestArrived, RequestEnded
from vertumnus.domain.orders import Prefill
from vertumnus.domain.units import SECOND
from vertumnus.records.log import LogDamaged
from vertumnus.records.run_dir import RunDir
from vertumnus_console.agreement import Disagreement
from vertumnus_console.events import Event, events_of
from vertumnus_console.folds import Folds
from vertumnus_console.panes.cluster import composition, in_service
from vertumnus_console.panes.top_line import mode
from vertumnus_console.player import Player
from vertumnus_console.view import ClusterView, Counts, WorkerView


@pytest.fixture
def player(recorded_run: RunDir) -> Iterator[Player]:
    """A player at the end of the recorded run, which plays ten times as fast as the clock."""
    player = settled(Player(recorded_run, speed=10.0))
    yield player
    player.close()


def test_the_end_equals_the_tables(player: Player, recorded_run: RunDir) -> None:
    """Counts, TTFT, attainment and hit rates are those of the requests table, all rows."""
    table = pq.read_table(recorded_run.table("requests"))
    view = player.snapshot().view
    assert view.counts == Counts(200, 0, 0, 0, 200, 0, 0, 0)
    ttft = table["ttft_s"].to_numpy()
    assert view.whole.ttft_mean_s == pytest.approx(ttft.mean())
    assert view.whole.ttft_p50_s == pytest.approx(np.percentile(ttft, 50))
    assert view.whole.ttft_p90_s == pytest.approx(np.percentile(ttft, 90))
    tokens, met = table["input_tokens"].to_numpy(), table["slo_met"].to_numpy(zero_copy_only=False)
    assert view.whole.attainment == pytest.approx(tokens[met].sum() / tokens.sum())
    inputs, cached = Counter[str](), Counter[str]()
    for row in table.to_pylist():
        inputs[row["worker_id"]] += row["input_tokens"]
        cached[row["worker_id"]] += row["cached_tokens"]
    rates = {str(worker.group): worker.hit_rate for worker in view.workers}
    assert rates == {name: cached[name] / inputs[name] if inputs[name] else None for name in rates}
    assert str(view.composition) == "4 x CP2 + 8 x CP4"
    assert all(worker.state == "idle" and worker.queue_ns == 0 for worker in view.workers)


def test_every_instant_equals_the_tables(player: Player, recorded_run: RunDir) -> None:
    """One seek step after the other, back to the start: who has arrived, started and ended by then."""
    rows = pq.read_table(recorded_run.table("requests")).to_pylist()
    now = player.snapshot().view.now_ns
    for _ in range(20):
        player.seek(-1)
        view = settled(player).snapshot().view
        assert view.now_ns < now
        now = view.now_ns
        counts, at = view.counts, now / SECOND
        assert counts.arrived == sum(row["arrival_s"] < at for row in rows)
        assert counts.finished == sum(row["t_ns"] < now for row in rows)
        started = [row for row in rows if row["arrival_s"] + row["queue_s"] < at]
        prefilled = sum(row["arrival_s"] + row["queue_s"] + row["prefill_s"] < at for row in started)
        assert counts.queued == counts.arrived - len(started)
        assert counts.prefill == len(started) - prefilled
        assert counts.decode == prefilled - counts.finished
        running = {run.request_id: run.cached_tokens for w in view.workers for run in w.running}
        assert len(running) == counts.prefill
        for row in rows:
            assert running.get(row["request_id"], row["cached_tokens"]) == row["cached_tokens"]
        lately = np.array([r["ttft_s"] for r in rows if now - 60 * SECOND <= r["t_ns"] < now])
        assert view.recent.requests == len(lately)
        assert view.recent.ttft_mean_s == (pytest.approx(lately.mean()) if len(lately) else None)
    assert now == 0


def test_the_start_is_before_everything(player: Player) -> None:
    """At instant 0 nothing has arrived and every block is free; the end is found again from there."""
    end = player.snapshot()
    player.go_to_start()
    view = settled(player).snapshot().view
    assert view.counts == Counts(0, 0, 0, 0, 0, 0, 0, 0)
    assert all(worker.blocks_used == 0 for worker in view.workers)
    assert view.arrival_rate is view.whole.ttft_mean_s is view.whole.attainment is None
    for _ in range(20):
        player.seek(1)
    assert settled(player).snapshot() == end


def test_there_and_back_is_the_same(player: Player) -> None:
    """An instant reached from behind, from before and by playing shows the same."""
    player.seek(-8)
    back = settled(player).snapshot().view
    player.seek(-6)
    settled(player)
    player.seek(6)
    assert _without_clock(settled(player).snapshot().view) == _without_clock(back)
    player.go_to_start()
    player.toggle(wall_s=100.0)
    settled(player, 100.0 + back.now_ns / SECOND / 10)
    assert _without_clock(player.snapshot().view) == _without_clock(back)


def test_playing_goes_with_the_clock(player: Player) -> None:
    """Ten seconds of the run a second, from the start; paused it stands; past the end it stays there."""
    player.toggle(wall_s=5.0)
    assert settled(player, 5.1).snapshot().is_playing
    assert player.snapshot().view.now_ns == pytest.approx(SECOND, abs=10)
    player.toggle(wall_s=5.1)
    paused = settled(player, 7.0).snapshot()
    assert not paused.is_playing and paused.view.now_ns == pytest.approx(SECOND, abs=10)
    player.toggle(wall_s=8.0)
    ended = settled(player, 10_000.0).snapshot()
    assert ended.follows and not ended.is_playing and ended.view.counts.finished == 200
    assert player.is_at_rest


def test_a_log_that_grows_is_followed(recorded_run: RunDir, tmp_path: Path) -> None:
    """What is written is shown; the end of the writer is seen; paused, the view stands still."""
    growing = GrowingRun(tmp_path, recorded_run)
    player = settled(Player(growing.run, speed=1.0))
    assert player.snapshot().view.counts.arrived == 0
    growing.grow(0.5)
    half = settled(player).snapshot()
    assert half.is_live and half.follows and 0 < half.view.counts.arrived < 200
    player.toggle(wall_s=0.0)
    growing.grow()
    paused = settled(player).snapshot()
    assert not paused.follows and paused.view.counts == half.view.counts
    player.go_to_end()
    whole = settled(player).snapshot()
    assert whole.is_live and not player.is_at_rest and whole.view.counts.finished == 200
    growing.end()
    ended = settled(player).snapshot()
    assert not ended.is_live and ended.status == "killed" and player.is_at_rest
    player.close()


def test_a_torn_end_is_told_and_damage_ends_the_replay(recorded_run: RunDir, tmp_path: Path) -> None:
    """A killed run's last words are missed with a note; a wrong byte in the middle is an error."""
    growing = GrowingRun(tmp_path, recorded_run)
    growing.grow()
    growing.end()
    content = growing.run.log.read_bytes()
    growing.run.log.write_bytes(content[:-3])
    player = settled(Player(growing.run, speed=1.0))
    assert player.snapshot().status == "killed, last records lost"
    player.close()
    middle = len(content) // 2
    growing.run.log.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    player = Player(growing.run, speed=1.0)
    with pytest.raises(LogDamaged, match="damaged at byte"):
        settled(player)
    player.close()


def test_a_log_cut_in_mid_event_stands_between_events(recorded_run: RunDir, tmp_path: Path) -> None:
    """Wherever the written part ends, the pool's books balance there."""
    growing = GrowingRun(tmp_path, recorded_run)
    player = Player(growing.run, speed=1.0)
    for _ in range(25):
        growing.grow(0.1)
        settled(player)
        assert player.replay.pool.books().problems == ()
    player.close()
    growing.end()


def test_a_lost_rank_is_seen(recorded_run: RunDir, tmp_path: Path) -> None:
    """Its worker leaves the composition, its requests go elsewhere, and the loss is the newest event."""
    growing = GrowingRun(tmp_path, recorded_run)
    growing.grow(0.5)
    player = settled(Player(growing.run, speed=1.0))
    before = player.snapshot().view
    growing.tell(Record(INPUT, RankLost(before.now_ns, 2, 0, "unplugged")))
    view = settled(player).snapshot().view
    assert [str(worker.group) for worker in view.workers if worker.state == "lost"] == ["0x4"]
    assert str(view.composition) == "4 x CP2 + 7 x CP4"
    assert view.workers[0].queued == 0 and view.workers[0].running == ()
    (lost,) = [event for event in view.events if event.kind == "rank_lost"]
    assert before.workers[0].queued + len(before.workers[0].running) == 1
    assert lost.text == (
        "rank 2: unplugged; its worker is out of service; 1 request is placed anew; "
        "the run goes on and ends INVALID"
    )
    assert view.counts.arrived == before.counts.arrived and view.counts.finished == before.counts.finished
    player.close()
    growing.end()


def test_the_last_loss_says_that_nobody_is_left(recorded_run: RunDir, tmp_path: Path) -> None:
    """Before it the run goes on, whoever fails; with the last worker all requests fail, and it says so."""
    growing = GrowingRun(tmp_path, recorded_run)
    growing.grow(0.5)
    player = settled(Player(growing.run, speed=1.0))
    view = player.snapshot().view
    *others, last = view.workers

    def lose(worker: WorkerView) -> ClusterView:
        growing.tell(Record(INPUT, RankLost(view.now_ns, worker.group.first_rank, 0, "unplugged")))
        return settled(player).snapshot().view

    for number, worker in enumerate(others):
        view = replace(view, now_ns=view.now_ns + number)
        before = lose(worker)
    newest = next(event for event in before.events if event.kind == "rank_lost")
    assert newest.text.endswith("; the run goes on and ends INVALID")
    assert in_service(before) == f"1 x CP{last.group.degree}"
    view = replace(view, now_ns=view.now_ns + 1)
    after = lose(last)
    failed = after.counts.failed - before.counts.failed
    (told,) = [each.text for each in after.events if each.text.startswith(f"rank {last.group.first_rank}:")]
    assert failed > 1 and told == (
        f"rank {last.group.first_rank}: unplugged; its worker is out of service; {failed} requests are ended "
        "unserved; nobody is left to serve: all requests fail from here on, and the run ends INVALID"
    )
    assert in_service(after) == "no worker in service" and not after.can_serve and before.can_serve
    player.close()
    growing.end()


def test_the_last_decode_rank_is_as_good_as_the_last_worker(recorded_run: RunDir, tmp_path: Path) -> None:
    """With workers left but nobody to decode, the loss says that nobody can serve; so does the overview."""
    growing = GrowingRun(tmp_path, recorded_run)
    growing.grow(0.5)
    player = settled(Player(growing.run, speed=1.0))
    now, ranks = player.snapshot().view.now_ns, player.header.config["cluster"]["decode"]["ranks"]
    for rank in range(ranks):
        growing.tell(Record(INPUT, DecodeRankLost(now + 1 + rank, rank, 0, "unplugged")))
    view = settled(player).snapshot().view
    texts = [event.text for event in view.events if event.kind == "decode_rank_lost"]
    assert len(texts) == ranks > 1 and "nobody is left to serve" in texts[0]
    assert all(text.endswith("the run goes on and ends INVALID") for text in texts[1:])
    assert composition(view, 40).plain == (
        "4 x CP2 + 8 x CP4, 40 GPUs  nobody is left to serve: all requests fail"
    )
    player.close()
    growing.end()


def test_how_long_a_live_run_is_quiet(recorded_run: RunDir, tmp_path: Path) -> None:
    """The clock runs from the last event that was read, of the end of a run that goes on alone."""
    growing = GrowingRun(tmp_path, recorded_run)
    growing.grow(0.3)
    player = settled(Player(growing.run, speed=1.0), 100.0)
    player.turn(107.0)
    assert player.snapshot().quiet_s == 7.0
    growing.grow(0.1)
    settled(player, 108.0)
    assert player.snapshot().quiet_s == 0.0
    player.turn(120.0)
    assert mode(player.snapshot()) == "LIVE, quiet 12 s"
    held = player.snapshot()
    assert mode(held._replace(view=replace(held.view, speed=0.0))) == "LIVE HELD"
    player.go_to_start()
    settled(player, 130.0)
    assert player.snapshot().quiet_s == 0.0
    player.go_to_end()
    growing.end()
    settled(player, 140.0)
    assert player.snapshot().quiet_s == 0.0 and player.snapshot().status == "killed"
    shutil.rmtree(growing.run.path)
    assert player.snapshot().status == "log deleted"
    player.close()


def test_a_replay_that_leaves_its_run_is_told(recorded_run: RunDir, tmp_path: Path) -> None:
    """Where the log has a request at another worker than the replay has, it stops and says which."""
    growing = GrowingRun(tmp_path, recorded_run)
    placements = [place for place, record in enumerate(growing.left) if isinstance(record.body, Prefill)]
    source, order = growing.left[placements[50]]
    other = CpGroup(36, 2) if order.worker == CpGroup(38, 2) else CpGroup(38, 2)
    growing.left[placements[50]] = Record(source, replace(order, worker=other))
    growing.grow()
    player = Player(growing.run, speed=1.0)
    with pytest.raises(Disagreement, match=f"request {order.request_id} was placed at {other}"):
        settled(player)
    player.close()
    growing.end()


def test_refused_requests_are_events() -> None:
    """A rejected request is counted and told with its reason, between the faults, newest first."""
    folds = Folds(a_header())
    folds.tell(INPUT, RequestArrived(0, a_request(0)))
    folds.tell(INPUT, RequestArrived(0, a_request(1)))
    folds.tell(INPUT, RankLost(5, 0, 0, "gone"))
    folds.tell(FACT, RequestEnded(7, 0, "rejected", 0, "too long"))
    folds.tell(INPUT, RankLost(9, 1, 0, "gone"))
    folds.tell(FACT, RequestEnded(10, 1, "cancelled", 0))
    assert folds.totals.ended == {"rejected": 1, "cancelled": 1}
    invalid = "the run goes on and ends INVALID"
    assert events_of(folds) == (
        Event(9, "rank_lost", f"rank 1: gone; its worker is out of service; {invalid}"),
        Event(7, "rejected", "request 0: too long"),
        Event(5, "rank_lost", f"rank 0: gone; its worker is out of service; {invalid}"),
    )
    assert folds.totals.whole().requests == 2 and folds.totals.whole().ttft_p50_s is None


def test_a_pause_of_a_live_run_ends_with_one_key(recorded_run: RunDir, tmp_path: Path) -> None:
    """The same key that paused follows again, with all that came meanwhile; after a seek it plays instead."""
    growing = GrowingRun(tmp_path, recorded_run)
    growing.grow(0.3)
    player = settled(Player(growing.run, speed=1.0))
    shown = player.snapshot().view.counts
    player.toggle(wall_s=0.0)
    growing.grow(0.5)
    assert settled(player).snapshot().view.counts == shown
    player.toggle(wall_s=1.0)
    again = settled(player).snapshot()
    assert again.follows and again.view.counts.arrived > shown.arrived
    player.toggle(wall_s=2.0)
    player.seek(-1)
    player.toggle(wall_s=3.0)
    assert settled(player, 3.0).snapshot().is_playing
    player.close()
    growing.end()


def _without_clock(view: ClusterView) -> object:
    """The ledger's rest depends on the nanosecond; everything else only on the events before it."""
    return view.counts, view.events, view.whole, [(w.state, w.running, w.blocks_used) for w in view.workers]
