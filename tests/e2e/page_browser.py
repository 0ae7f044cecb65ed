"""A browser with the page open and a server of the test's behind it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from playwright.async_api import Locator, Page, async_playwright, expect

from tests.e2e.page_peer import LIMIT_S, PeerCall, PeerServer, Script
from tests.harness.browser import CHROMIUM

FAKE_MICROPHONE = ("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream")
"""Chromium's microphones that beep, and nobody who is asked whether they may be used."""
DESKTOP = (1280, 800)
PHONE = (360, 740)


@dataclass(frozen=True, slots=True)
class OpenPage:
    """The page, as a person sees it."""

    page: Page
    server: PeerServer
    faults: list[str]
    """Errors the page did not catch, and what its content policy forbade."""

    def button(self, name: str) -> Locator:
        """The button with exactly this name."""
        return self.page.get_by_role("button", name=name, exact=True)

    @property
    def captions(self) -> Locator:
        """The log of what both said."""
        return self.page.get_by_role("log", name="Captions")

    async def shows(self, *, state: str, text: str = "") -> None:
        """Wait until the page is in this state and, if given, shows the text."""
        await expect(self.page.locator("html")).to_have_attribute("data-state", state)
        if text:
            await expect(self.page.locator("main")).to_contain_text(text)

    async def until(self, expression: str) -> None:
        """Wait until JavaScript is true; waiting in the page itself would need its policy to allow eval."""
        async with asyncio.timeout(LIMIT_S):
            while not await self.page.evaluate(expression):  # noqa: ASYNC110 - nothing in the page tells us
                await asyncio.sleep(0.05)

    async def call(self, count: int = 1) -> tuple[PeerCall, Script]:
        """Press the button that calls; gives the server's end when the call is live."""
        await self.page.get_by_role("button", name=re.compile(r"^Call( again)?$")).click()
        call = await self.server.call(count)
        await expect(self.page.locator("html")).to_have_attribute("data-phase", "live")
        return call, Script(call)


@asynccontextmanager
async def open_page(*, flags: Sequence[str] = FAKE_MICROPHONE, init: str = "", size: tuple[int, int] = DESKTOP,
                    **context: Any) -> AsyncIterator[OpenPage]:
    """Serve the page and open it; ``init`` is script that runs before the page's own.

    At the end there must have been no fault in the page.
    """
    expect.set_options(timeout=LIMIT_S * 1000)
    async with PeerServer().serving() as server, async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--disable-gpu", *flags])
        try:
            width, height = size
            tab = await browser.new_context(viewport={"width": width, "height": height}, **context)
            page = await tab.new_page()
            faults: list[str] = []
            page.on("pageerror", lambda error: faults.append(str(error)))
            page.on("console", lambda line: faults.append(line.text) if "Content Security" in line.text else None)
            if init:
                await page.add_init_script(init)
            await page.goto(server.url)
            await expect(page.locator("html")).to_have_attribute("data-phase", re.compile("idle|ended"))
            yield OpenPage(page, server, faults)
            assert faults == []
        finally:
            await browser.close()
