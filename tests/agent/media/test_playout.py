"""Playing replies: nothing lost, nothing twice, nothing after a flush."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.agent.media.playout import DUCKED_GAIN, MAX_BUFFERED_S, Playout, Pulled
from duologue.engine import Pcm
from duologue.metrics import DROPS
from tests.agent.media import steady

RATE = 24_000
FRAME = 480
FADE = 120


def reply(count: int, turn: int = 0) -> Pcm:
    """Samples that say where in which reply they are; never zero."""
    return (1000 + 5000 * turn + np.arange(count) % 5000).astype(np.int16)


def loud(count: int) -> Pcm:
    return np.full(count, 20_000, np.int16)


def playing(count: int = 50 * FRAME, pulls: int = 3) -> Playout:
    playout = Playout(RATE)
    playout.enqueue(0, 0, loud(count), last=True)
    for _ in range(pulls):
        playout.pull(FRAME)
    return playout


def dropped(reason: str) -> float:
    return float(DROPS.labels(what="reply_audio", reason=reason)._value.get())


@steady
@given(chunks=st.lists(st.integers(0, 3000), max_size=10), pulls=st.lists(st.integers(0, 1500), min_size=1))
def test_an_uninterrupted_reply_is_played_sample_for_sample(chunks: list[int], pulls: list[int]) -> None:
    playout = Playout(RATE)
    whole = reply(sum(chunks))
    at = 0
    for index, size in enumerate(chunks):
        assert playout.enqueue(0, at, whole[at:at + size], last=index == len(chunks) - 1)
        at += size
    assert playout.buffered == whole.size
    heard: list[Pulled] = []
    step = 0
    while playout.buffered:
        heard.append(playout.pull(pulls[step % len(pulls)] + 1))
        step += 1
    pcm = np.concatenate([np.zeros(0, np.int16), *(pulled.pcm for pulled in heard)])
    assert np.array_equal(pcm[:whole.size], whole)
    assert not pcm[whole.size:].any()
    assert playout.playhead(0) == whole.size
    if whole.size:
        assert heard[0].started == (0,)
        assert heard[-1].finished == (0,)
        assert sum(len(pulled.started) + len(pulled.finished) for pulled in heard) == 2
    assert playout.underruns == 0


def test_a_pull_gives_silence_where_there_is_no_reply() -> None:
    playout = Playout(RATE)
    pulled = playout.pull(FRAME)
    assert pulled.pcm.shape == (FRAME,)
    assert not pulled.pcm.any()
    assert not playout.audible
    playout.enqueue(0, 0, reply(100), last=True)
    assert playout.pull(FRAME).pcm.any()
    assert playout.audible
    playout.pull(FRAME)
    assert not playout.audible


def test_replies_follow_each_other_within_a_frame() -> None:
    playout = Playout(RATE)
    playout.enqueue(3, 0, reply(200), last=True)
    playout.enqueue(4, 0, reply(100, 1), last=True)
    pulled = playout.pull(FRAME)
    assert pulled.started == pulled.finished == (3, 4)
    assert np.array_equal(pulled.pcm[:300], np.concatenate((reply(200), reply(100, 1))))


def test_an_empty_reply_is_finished_and_never_started() -> None:
    playout = Playout(RATE)
    playout.enqueue(0, 0, reply(0), last=True)
    pulled = playout.pull(FRAME)
    assert (pulled.started, pulled.finished) == ((), (0,))


def test_the_end_of_a_reply_may_come_after_its_last_sample_was_played() -> None:
    playout = Playout(RATE)
    playout.enqueue(0, 0, reply(FRAME), last=False)
    assert playout.pull(FRAME).finished == ()
    playout.pull(FRAME)
    playout.enqueue(0, FRAME, reply(0), last=True)
    assert playout.pull(FRAME).finished == (0,)
    assert playout.underruns == 0


def test_a_reply_that_runs_dry_and_goes_on_is_an_underrun_without_a_click() -> None:
    playout = Playout(RATE)
    playout.enqueue(0, 0, loud(FRAME + 200), last=False)
    heard = [playout.pull(FRAME).pcm for _ in range(3)]
    playout.enqueue(0, FRAME + 200, loud(FRAME * 2), last=True)
    assert playout.underruns == 1
    heard += [playout.pull(FRAME).pcm for _ in range(2)]
    assert np.abs(np.diff(np.concatenate(heard).astype(int))).max() <= 20_000 / FADE + 1
    assert playout.playhead(0) == 3 * FRAME + 200


def test_a_pause_is_silent_within_one_frame_and_a_resume_goes_on_where_it_was() -> None:
    playout = playing()
    playout.pause()
    assert playout.paused
    held = [playout.pull(FRAME).pcm for _ in range(3)]
    assert not np.concatenate(held)[FADE:].any()
    assert playout.playhead(0) == 3 * FRAME + FADE
    playout.resume()
    resumed = [playout.pull(FRAME).pcm for _ in range(2)]
    whole = np.concatenate([loud(10), *held, *resumed])
    assert np.abs(np.diff(whole.astype(int))).max() <= 20_000 / FADE + 1
    assert (resumed[0][FADE:] == 20_000).all()
    assert playout.playhead(0) == 5 * FRAME + FADE


def test_a_pause_before_a_reply_holds_it_back_whole() -> None:
    playout = Playout(RATE)
    playout.pause()
    playout.enqueue(0, 0, reply(FRAME), last=True)
    assert playout.pull(FRAME).started == ()
    assert playout.playhead(0) == 0
    playout.resume()
    assert np.array_equal(playout.pull(FRAME).pcm, reply(FRAME))


def test_a_ducked_reply_is_softer_by_twelve_decibels_and_comes_back() -> None:
    playout = playing()
    playout.duck()
    ducked = [playout.pull(FRAME).pcm for _ in range(2)]
    playout.unduck()
    back = [playout.pull(FRAME).pcm for _ in range(2)]
    assert 20 * np.log10(ducked[1] / 20_000) == pytest.approx(-12, abs=0.01)
    assert (back[1] == 20_000).all()
    whole = np.concatenate([*ducked, *back]).astype(int)
    assert np.abs(np.diff(whole)).max() <= 20_000 * (1 - DUCKED_GAIN) / FRAME + 1
    assert playout.playhead(0) == 7 * FRAME


def test_after_a_flush_only_a_short_fade_of_the_reply_is_heard() -> None:
    playout = playing()
    playout.flush()
    assert playout.buffered == FADE
    pcm = playout.pull(FRAME).pcm.astype(int)
    assert (np.diff(pcm[:FADE]) < 0).all()
    assert pcm[0] > 19_000
    assert not pcm[FADE - 1:].any()
    assert playout.playhead(0) == 3 * FRAME + FADE
    assert not playout.pull(FRAME).pcm.any()


def test_a_flush_of_a_held_reply_is_silent_and_ends_pause_and_duck() -> None:
    playout = playing()
    playout.duck()
    playout.pause()
    playout.pull(FRAME)
    playout.flush()
    assert playout.buffered == 0
    playout.enqueue(1, 0, reply(FRAME, 1), last=True)
    assert np.array_equal(playout.pull(FRAME).pcm, reply(FRAME, 1))


def test_a_new_reply_follows_the_fade_of_a_flushed_one() -> None:
    playout = playing()
    playout.flush()
    playout.enqueue(1, 0, reply(FRAME, 1), last=True)
    pulled = playout.pull(FRAME)
    assert np.array_equal(pulled.pcm[FADE:], reply(FRAME, 1)[:FRAME - FADE])
    assert (pulled.started, pulled.finished) == ((1,), ())


def test_chunks_of_a_flushed_reply_are_dropped_and_counted() -> None:
    playout = playing()
    playout.flush()
    before = dropped("stale")
    assert not playout.enqueue(0, 50 * FRAME, loud(FRAME), last=True)
    assert dropped("stale") - before == 1
    playout.pull(FRAME)
    assert not playout.pull(FRAME).pcm.any()


def test_a_chunk_that_does_not_follow_ends_the_reply_and_is_counted() -> None:
    playout = Playout(RATE)
    playout.enqueue(0, 0, reply(100), last=False)
    before = dropped("gap")
    assert not playout.enqueue(0, 101, reply(100), last=False)
    assert not playout.enqueue(0, 100, reply(100), last=False)
    assert dropped("gap") - before == 1
    assert playout.pull(FRAME).finished == (0,)
    assert playout.playhead(0) == 100


def test_a_newer_reply_ends_the_one_before_it() -> None:
    playout = Playout(RATE)
    playout.enqueue(0, 0, reply(100), last=False)
    playout.enqueue(1, 0, reply(100, 1), last=True)
    assert not playout.enqueue(0, 100, reply(100), last=True)
    assert playout.pull(FRAME).finished == (0, 1)


def test_a_sealed_reply_ends_with_what_it_has() -> None:
    playout = Playout(RATE)
    playout.enqueue(0, 0, reply(100), last=False)
    playout.seal(0)
    playout.seal(7)
    pulled = playout.pull(FRAME)
    assert pulled.finished == (0,)
    assert np.array_equal(pulled.pcm[:100], reply(100))


def test_what_waits_is_bounded_and_the_rest_is_dropped_and_counted() -> None:
    playout = Playout(8000)
    second = np.ones(8000, np.int16)
    before = dropped("full")
    taken = [playout.enqueue(0, 8000 * index, second, last=False) for index in range(MAX_BUFFERED_S + 2)]
    assert taken == [True] * MAX_BUFFERED_S + [False, False]
    assert dropped("full") - before == 1
    assert playout.buffered == 8000 * MAX_BUFFERED_S


def test_the_number_of_waiting_replies_is_bounded() -> None:
    playout = Playout(RATE)
    taken = [playout.enqueue(turn, 0, reply(0), last=True) for turn in range(40)]
    assert 0 < sum(taken) < 40


def test_playheads_of_old_replies_are_forgotten() -> None:
    playout = Playout(RATE)
    for turn in range(30):
        playout.enqueue(turn, 0, reply(10), last=True)
        playout.pull(FRAME)
    assert playout.playhead(29) == 10
    assert playout.playhead(0) == 0


actions = st.one_of(
    st.tuples(st.just("enqueue"), st.integers(0, 1500)), st.tuples(st.just("last"), st.integers(0, 1500)),
    st.tuples(st.just("pull"), st.integers(0, 1500)), st.tuples(st.just("pull"), st.just(FRAME)),
    st.tuples(st.sampled_from(["pause", "resume", "duck", "unduck", "flush"]), st.just(0)))


@steady
@given(st.lists(actions, max_size=60))
def test_the_playhead_is_what_was_handed_out_whatever_happens(steps: list[tuple[str, int]]) -> None:
    playout = Playout(RATE)
    whole = reply(100_000)  # every reply is a prefix of this
    turn, sent = 0, 0
    live = {0}
    started: list[int] = []
    finished: list[int] = []
    ever_sent: dict[int, int] = {}
    for action, size in steps:
        match action:
            case "enqueue" | "last":
                if playout.enqueue(turn, sent, whole[sent:sent + size], action == "last"):
                    sent += size
                    ever_sent[turn] = sent
                if action == "last":
                    turn, sent = turn + 1, 0
                    live.add(turn)
            case "flush":
                playout.flush()
                live = {turn + 1}
                turn, sent = turn + 1, 0
            case "pull":
                before = {one: playout.playhead(one) for one in range(turn + 1)}
                pulled = playout.pull(size)
                assert pulled.pcm.size == size
                place = 0
                for one in range(turn + 1):
                    now = playout.playhead(one)
                    count = now - before[one]
                    assert 0 <= count <= size
                    if one not in live and count:
                        assert place == 0
                        assert count <= FADE
                    true = whole[before[one]:now].astype(int)
                    given = pulled.pcm[place:place + count].astype(int)
                    assert ((given >= 0) & (given <= true)).all()
                    place += count
                assert not pulled.pcm[place:].any()
                assert playout.audible == (place > 0)
                if not playout.paused:
                    waiting = sum(ever_sent.get(one, 0) - playout.playhead(one) for one in live)
                    assert place == size or not waiting
                started += pulled.started
                finished += pulled.finished
            case _:
                getattr(playout, action)()
    assert started == sorted(set(started))
    assert finished == sorted(set(finished))
    for one in finished:
        assert playout.playhead(one) == ever_sent.get(one, 0) or one < turn - 16
