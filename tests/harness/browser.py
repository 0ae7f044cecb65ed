"""A caller in a real headless Chromium: opens a page, presses Call, and records what is heard there."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
from playwright.async_api import Page, Route, TimeoutError, async_playwright

from tests.harness.impair import ImpairedNetwork
from tests.harness.microphone import Microphone
from tests.harness.recording import ChannelEvent, Recording, Track
from tests.harness.sound import RATE, from_pcm

CHROMIUM = "/usr/bin/chromium"
CALLS = "**/v1/realtime/calls"

_FLAGS = (
    "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--autoplay-policy=no-user-gesture-required",
    "--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream",
)
_POLL_S = 0.2


class CallTimeoutError(AssertionError):
    """What a caller waited for did not happen; the text tells what did."""


class BrowserCall:
    """One call from one browser; the sample counts of its recording are its clock."""

    def __init__(self, page: Page, microphone: Microphone | None) -> None:
        self.page = page
        self.microphone = microphone
        self.console: list[str] = []
        """What the page wrote to its console, errors included."""
        self.states: list[tuple[int, str]] = []
        """Changes of the peer connection's state and openings of data channels, with their samples."""
        self.sent: list[ChannelEvent] = []
        """Messages the page sent on its data channel."""
        self._events: list[ChannelEvent] = []
        self._mic, self._agent = Track(), Track()
        page.on("console", lambda message: self.console.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.console.append(f"error: {error}"))

    async def press_call(self) -> None:
        """Press the page's Call button."""
        await self.page.get_by_role("button", name=re.compile(r"^\s*(start )?call", re.IGNORECASE)).click()

    async def hang_up(self) -> None:
        """Press the page's hang-up button."""
        try:
            await self.page.get_by_role("button", name=re.compile(r"hang ?up", re.IGNORECASE)).click(timeout=5000)
        except TimeoutError as fault:
            raise CallTimeoutError(f"there is no call to hang up; {await self._story()}") from fault

    async def recording(self) -> Recording:
        """Everything recorded so far; blocks the page's recorder skipped are silence."""
        taken = await self.page.evaluate("window.takeRecording()")
        self._events += [ChannelEvent(item["at"], json.loads(item["data"])) for item in taken["messages"]]
        self.sent += [ChannelEvent(item["at"], json.loads(item["data"])) for item in taken["sent"]]
        self.states += [(item["at"], item["state"]) for item in taken["states"]]
        return await asyncio.to_thread(self._assemble, taken["blocks"])

    def _assemble(self, blocks: list[dict[str, Any]]) -> Recording:
        for block in blocks:
            pcm = from_pcm(np.frombuffer(base64.b64decode(block["pcm"]), np.int16))
            self._mic.put(int(block["first"]), pcm[0::2])
            self._agent.put(int(block["first"]), pcm[1::2])
        length = self._agent.end
        return Recording(self._mic.read(0, length), self._agent.read(0, length), tuple(self._events))

    async def until(self, met: Callable[[Recording], bool], what: str, limit_s: float = 30.0) -> Recording:
        """Wait until ``met`` says so of the recording so far. Raises :class:`CallTimeoutError`."""
        deadline = time.monotonic() + limit_s
        while True:
            recording = await self.recording()
            if await asyncio.to_thread(met, recording):
                return recording
            if time.monotonic() > deadline:
                raise CallTimeoutError(f"not within {limit_s} s: {what}; {await self._story()}")
            await asyncio.sleep(_POLL_S)

    async def _story(self) -> str:
        """What happened so far, for a message."""
        recording = await self.recording()
        shown = await self.page.get_by_role("status").all_inner_texts()
        events = [(event.at, event.type) for event in recording.events if event.type != "duologue.decision"]
        return (f"the page shows {shown}; {recording.agent.size / RATE:.1f} s recorded, agent heard in "
                f"{recording.replies()}, states {self.states}, console {self.console}, events {events}")

    async def until_sample(self, sample: int) -> Recording:
        """Wait until so much has been recorded."""
        return await self.until(lambda recording: recording.agent.size >= sample, f"sample {sample}",
                                30.0 + sample / RATE)

    async def until_answered(self, after: int, quiet_s: float = 1.5, limit_s: float = 40.0) -> Recording:
        """Wait until the agent was heard after sample ``after`` and then was quiet for ``quiet_s``."""
        return await self.until(lambda recording: recording.answered(after, quiet_s),
                                f"an answer after sample {after}", limit_s)


async def _bend(page: Page, network: ImpairedNetwork) -> None:
    """Send the page's media through ``network``."""

    async def through(route: Route) -> None:
        if route.request.method != "POST":
            await route.continue_()
            return
        response = await route.fetch(post_data=network.offer(route.request.post_data or ""))
        body = await response.text()
        if response.status == 201:
            body = await network.answer(body)
        await route.fulfill(response=response, body=body)

    await page.route(CALLS, through)


@asynccontextmanager
async def open_page(
    microphone: Microphone | None, network: ImpairedNetwork | None = None,
) -> AsyncIterator[BrowserCall]:
    """A browser with an empty page whose microphone will hear ``microphone`` (None: it is refused)."""
    with tempfile.TemporaryDirectory() as folder:
        flags = [*_FLAGS]
        if microphone is None:
            flags.append("--deny-permission-prompts")
            flags.remove("--use-fake-ui-for-media-stream")
        else:
            wav = microphone.write(Path(folder) / "microphone.wav")
            flags.append(f"--use-file-for-fake-audio-capture={wav}%noloop")
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path=CHROMIUM, args=flags, headless=True, chromium_sandbox=False)
            try:
                page = await (await browser.new_context(bypass_csp=True)).new_page()
                await page.add_init_script(path=Path(__file__).with_name("recorder.js"))
                if network is not None:
                    await _bend(page, network)
                yield BrowserCall(page, microphone)
            finally:
                await browser.close()


@asynccontextmanager
async def browser_call(
    url: str, microphone: Microphone, network: ImpairedNetwork | None = None,
) -> AsyncIterator[BrowserCall]:
    """Call the server at ``url`` from its own page: open it, press Call, wait until audio can flow."""
    async with open_page(microphone, network) as call:
        await call.page.goto(url)
        await call.press_call()
        await call.until(lambda _: any(state == "connected" for _, state in call.states), "a connected call")
        yield call
