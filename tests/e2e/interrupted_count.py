"""What every door is tried with: a sum, a count that is cut by "stop", and what the agent remembers of it."""

from __future__ import annotations

import re

from tests.harness.answers import number_in
from tests.harness.microphone import Microphone
from tests.harness.recogniser import counted_up, number_words
from tests.harness.recording import Recording
from tests.harness.sound import RATE, Span


def spoken() -> Microphone:
    """The caller. Long pauses: a busy machine takes its time, and the recording cannot wait for it."""
    return (Microphone().pause(7).say("what is seven plus five").pause(7).say("count to twenty")
            .pause(6).say("stop").pause(6).say("what was the last number you said"))


def replies_after(recording: Recording, said: list[Span]) -> list[Span]:
    """The stretch from the end of each utterance to the start of the next, or of the recording's end."""
    ends = [*(span.start for span in said[1:]), recording.agent.size]
    return [Span(span.end, end) for span, end in zip(said, ends, strict=True)]


def heard(recording: Recording, span: Span) -> int | None:
    """The number a caller makes of a stretch of the agent's voice."""
    return number_in(recording.agent[span.start : span.end])


def check(recording: Recording, microphone: Microphone) -> int:
    """Hold a recording of ``spoken`` against what a caller may expect; returns the number the count was cut at."""
    sum_, count, _, last = replies_after(recording, said := recording.said(microphone))
    assert heard(recording, sum_) == 12, recording.dialogue()
    # Up to two seconds after "stop" began: the count must have ended by then, and "okay" is no number.
    played = counted_up(recording.agent[count.start : said[2].start + 2 * RATE])
    assert len(played) >= 2, recording.dialogue()
    assert played[-1] < 20, recording.dialogue()
    recalled = heard(recording, last)
    assert recalled is not None, recording.dialogue()
    # The word under the cut may be made out by one side and not by the other; more than one it cannot be.
    assert abs(recalled - played[-1]) <= 1, recording.dialogue()
    return recalled


def cut_at(recording: Recording, microphone: Microphone) -> int:
    """The number the count was cut at as the client was told (of its own events)."""
    count = recording.said(microphone)[1]
    cut, = (event for event in recording.of_type("duologue.reply.heard") if event.at > count.start)
    return number_words(re.findall(r"[a-z]+", cut.body["heard_text"].lower()))[-1]
