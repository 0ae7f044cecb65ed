"""One message of a reply on its way into the framework: its sound in real time, its text in step with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

from livekit import rtc
from livekit.agents import llm, utils
from livekit.agents.types import TimedString

from duologue.plugins.livekit.pacing import Valve, paced
from duologue.plugins.livekit.words import Words


class Voicing:
    """What the framework reads instead of what LiveKit's session wrote."""

    def __init__(self, message: llm.MessageGeneration, words: Words, valve: Valve) -> None:
        self._message = message
        self._words = words
        self._valve = valve
        self._due = utils.aio.Chan[str]()
        self._written = asyncio.Event()
        self._listened_to = False

    def message(self) -> llm.MessageGeneration:
        """The message as the framework is to have it."""
        return replace(self._message, audio_stream=self._audio(), text_stream=self._text())

    async def _audio(self) -> AsyncIterator[rtc.AudioFrame]:
        loop, played, began = asyncio.get_running_loop(), 0.0, 0.0
        self._listened_to = True
        self._words.begin()
        async for piece in paced(self._message.audio_stream, self._valve):
            began = began or loop.time()
            played += piece.duration
            self._words.play(played, loop.time() - began)
            self._give()
            yield piece
        await self._written.wait()
        if not self._valve.is_shut:
            self._words.end()
        self._give()
        self._due.close()

    async def _text(self) -> AsyncIterator[str]:
        writing = asyncio.ensure_future(self._write())
        try:
            async for piece in self._due:
                yield piece
        finally:
            await utils.aio.cancel_and_wait(writing)

    async def _write(self) -> None:
        async for delta in self._message.text_stream:
            self._words.write(delta)
            self._give()
        self._written.set()
        if not self._listened_to:
            self._words.end()
            self._give()
            self._due.close()

    def _give(self) -> None:
        for text, start_s, end_s in self._words.due():
            if start_s is None or end_s is None:
                self._due.send_nowait(text)
            else:
                self._due.send_nowait(TimedString(text, start_time=start_s, end_time=end_s))
