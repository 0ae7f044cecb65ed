"""OpenAI's own Python client has the real server speak."""

from __future__ import annotations

import io
import wave
from pathlib import Path

import numpy as np
import pytest
from openai import AsyncOpenAI, BadRequestError, NotFoundError

from tests.agent.media.test_sound_file import read
from tests.harness import recogniser
from tests.harness.server import running_server
from tests.harness.sound import from_pcm

pytestmark = pytest.mark.e2e

SENTENCE = "Scientists discovered an ancient civilization in the desert."
LONG = "We walked along the river until it was dark, and then we went home to have some dinner. " * 20


async def test_a_text_is_spoken_and_heard_in_each_way_of_asking(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none") as client:
        whole = await client.audio.speech.create(model="embedded", voice="alloy", input=SENTENCE)
        samples, rate = read("mp3", whole.content)
        heard = recogniser.text(samples.astype(np.float32), rate)
        assert heard == "scientists discovered an ancient civilization in the desert"

        lengths = []
        for speed in (1.0, 2.0):
            async with client.audio.speech.with_streaming_response.create(
                    model="embedded", voice="alloy", input=SENTENCE, response_format="wav", speed=speed) as response:
                with wave.open(io.BytesIO(await response.read())) as file:
                    lengths.append(len(file.readframes(1 << 24)))
        assert lengths[1] < 0.7 * lengths[0]

        with pytest.raises(BadRequestError, match="at most 4096"):
            await client.audio.speech.create(model="embedded", voice="alloy", input="x" * 4097)
        with pytest.raises(BadRequestError, match="nothing in the input"):
            await client.audio.speech.create(model="embedded", voice="alloy", input="...")
        with pytest.raises(NotFoundError, match="served: embedded"):
            await client.audio.speech.create(model="tts-1", voice="alloy", input=SENTENCE)


async def test_a_long_text_is_spoken_to_its_end_and_one_that_is_left_holds_nobody_up(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none") as client:
        spoken = await client.audio.speech.create(
            model="embedded", voice="alloy", input=LONG + "This is the end of it.", response_format="pcm")
        sound = from_pcm(np.frombuffer(spoken.content, np.int16))
        assert len(sound) / 24_000 > len(LONG) / 25
        assert recogniser.text(sound[-int(2.5 * 24_000):], 24_000).endswith("this is the end of it")

        async with client.audio.speech.with_streaming_response.create(
                model="embedded", voice="alloy", input=LONG, response_format="pcm") as response:
            async for _ in response.iter_bytes():
                break
        # A server that drains waits for whoever still has a session.
        server.terminate()
        assert await server.exit_code(10) == 0
