"""Twenty telephones at once, each with a tune of its own that an echo gives back."""

from __future__ import annotations

import asyncio
from itertools import groupby, pairwise
from random import Random

import numpy as np
import pytest

from duologue.agent.media.g711 import G711
from duologue.engine import INPUT_RATE, Pcm
from tests.agent.transports.sip.house import house
from tests.harness.echo_media import EchoMedia
from tests.harness.phones import HOST, Phone, caller, packets_of

pytestmark = pytest.mark.component

CALLS = 20
NOTES_HZ = (500, 800, 1100, 1400, 1700, 2000)
NOTE_S = 0.3
PACKET = 160
"""Samples at 8 kHz of 20 ms."""
PCMU = 0
"""Its payload type (RFC 3551); RTCP comes by the same port."""


class Counting(EchoMedia):
    """An echo that counts what it is fed."""

    def __init__(self) -> None:
        super().__init__()
        self.heard = 0
        self.reasons: list[str] = []
        self.over = asyncio.Event()

    def feed(self, pcm: Pcm, concealed: int = 0) -> None:
        self.heard += pcm.size
        super().feed(pcm, concealed)

    def gone(self, reason: str) -> None:
        self.reasons.append(reason)
        self.over.set()


def tune(notes: list[int]) -> Pcm:
    """Silence for half a second, the notes, silence again."""
    at = np.arange(round(NOTE_S * INPUT_RATE)) / INPUT_RATE
    silence = np.zeros(INPUT_RATE // 2)
    sound: Pcm = np.concatenate(
        [silence, *(8000 * np.sin(2 * np.pi * note * at) for note in notes), silence]).astype(np.int16)
    return sound


def notes_in(pcm: Pcm) -> list[int]:
    """The notes of sound at 8 kHz that last for 100 ms at least, in their order."""
    frames = pcm[:pcm.size // PACKET * PACKET].reshape(-1, PACKET).astype(np.float64)
    loud = np.sqrt(np.mean(frames**2, axis=1)) > 1000
    strongest = np.argmax(np.abs(np.fft.rfft(frames, axis=1)), axis=1) * (8000 / PACKET)
    nearest = [min(NOTES_HZ, key=lambda note: abs(note - hz)) if is_loud else 0
               for hz, is_loud in zip(strongest, loud, strict=True)]
    return [note for note, run in groupby(nearest) if note and len(list(run)) >= 5]


async def test_twenty_calls_at_once_get_back_what_they_said_whole_and_in_order() -> None:
    law = G711("mu")
    tunes = [Random(number).sample(NOTES_HZ, len(NOTES_HZ)) for number in range(CALLS)]
    agent = await caller()
    async with house(Counting) as (made, _):
        phones = [Phone("pcmu", packets_of("pcmu", tune(notes))) for notes in tunes]
        for phone in phones:
            await phone.call(agent, f"sip:echo@{HOST}:{made.port}")
        assert len(made.calls) == CALLS
        for phone in phones:
            await phone.said_all()
        await asyncio.sleep(0.5)  # what is still on its way
        for phone, notes in zip(phones, tunes, strict=True):
            voice = [packet for packet in phone.got if packet.payload_type == PCMU]
            assert notes_in(np.concatenate([law.decode(packet.payload) for packet in voice])) == notes
            steps = [((after.sequence_number - before.sequence_number) & 0xFFFF,
                      (after.timestamp - before.timestamp) & 0xFFFF_FFFF) for before, after in pairwise(voice)]
            # A clock that a busy machine has stopped for a while skips that time, in whole packets.
            assert all(number == 1 and 0 < ticks < 8000 and ticks % PACKET == 0 for number, ticks in steps)
        said = tune(tunes[0]).size
        echoes = [media for _, media in made.calls if isinstance(media, Counting)]
        assert all(said - INPUT_RATE // 10 <= media.heard <= said + INPUT_RATE for media in echoes)
        assert all(media.reasons == [] for media in echoes)
        for phone in phones:
            phone.hang_up()
        await asyncio.gather(*(asyncio.wait_for(media.over.wait(), 10) for media in echoes))
        assert [media.reasons for media in echoes] == [["hung up"]] * CALLS
    await agent.close()
