"""The page for everybody: by keyboard, on a phone, without motion, in light and dark."""

from __future__ import annotations

from typing import Literal

import pytest
from playwright.async_api import expect

from tests.e2e.page_browser import PHONE, open_page

pytestmark = pytest.mark.e2e

PICTURES = """async (count) => {
  const canvas = document.querySelector("#visualiser");
  const pictures = new Set();
  for (let n = 0; n < count; n += 1) {
    await new Promise(requestAnimationFrame);
    pictures.add(canvas.toDataURL());
  }
  return pictures.size;
}"""
"""How many different pictures the visualiser shows in so many frames."""


async def test_a_whole_call_goes_by_keyboard_alone() -> None:
    async with open_page() as open_:
        keyboard = open_.page.keyboard
        await keyboard.press("Tab")
        await expect(open_.button("Call")).to_be_focused()
        await keyboard.press("Enter")
        call = await open_.server.call()
        await open_.shows(state="listening")
        await expect(open_.button("Hang up")).to_be_focused()
        await keyboard.press("Shift+Tab")
        await expect(open_.button("Mute")).to_be_focused()
        await keyboard.press("Space")
        await expect(open_.button("Mute")).to_have_attribute("aria-pressed", "true")
        for name in ("Hang up", "Microphone", "Captions", "Type instead of speaking"):
            await keyboard.press("Tab")
            await expect(open_.page.locator(":focus")).to_have_accessible_name(name)
        await keyboard.type("Hello")
        await keyboard.press("Enter")
        await call.until(lambda call: bool(call.got("response.create")), "the page asks for a reply")
        await keyboard.press("Escape")
        await call.until(lambda call: call.released, "the page gives the call back")
        await expect(open_.button("Call again")).to_be_focused()


async def test_what_has_the_focus_can_be_seen() -> None:
    async with open_page() as open_:
        await open_.page.keyboard.press("Tab")
        await expect(open_.button("Call")).to_have_css("outline-style", "solid")


async def test_when_the_call_ends_by_itself_the_focus_is_not_lost() -> None:
    async with open_page() as open_:
        call, _ = await open_.call()
        await open_.page.get_by_label("Type instead of speaking").focus()
        await call.close()
        await expect(open_.button("Call again")).to_be_focused()


async def test_escape_leaves_the_queue() -> None:
    async with open_page() as open_:
        open_.server.refusals = [(503, {"queue": {"ticket": "t", "position": 1, "eta_s": None}})]
        await open_.button("Call").click()
        await open_.shows(state="queued")
        await open_.page.keyboard.press("Escape")
        await open_.shows(state="idle")


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
async def test_the_visualiser_moves_unless_less_motion_is_wanted(
        motion: Literal["reduce", "no-preference"]) -> None:
    async with open_page(reduced_motion=motion) as open_:
        _, script = await open_.call()
        script.state("speaking")
        await open_.shows(state="speaking")
        pictures = await open_.page.evaluate(PICTURES, 20)
        assert pictures == 1 if motion == "reduce" else pictures > 1


async def test_without_motion_the_visualiser_still_tells_the_states_apart() -> None:
    async with open_page(reduced_motion="reduce") as open_:
        _, script = await open_.call()
        pictures = set()
        for state in ("listening", "thinking", "speaking", "ducked", "paused"):
            script.state(state)
            await open_.shows(state=state)
            pictures.add(await open_.page.evaluate("document.querySelector('#visualiser').toDataURL()"))
        assert len(pictures) == 5


async def test_on_a_phone_nothing_is_cut_off() -> None:
    async with open_page(size=PHONE, has_touch=True) as open_:
        fits = "document.documentElement.scrollWidth <= innerWidth"
        assert await open_.page.evaluate(fits)
        await expect(open_.button("Call")).to_be_in_viewport(ratio=1)
        _, script = await open_.call()
        script.caller_says("A word that is long: " + "antidisestablishmentarianism" * 3)
        script.latency("voice_to_voice", 12345)
        await expect(open_.captions).to_contain_text("antidisestablishmentarianism")
        assert await open_.page.evaluate(fits)
        for name in ("Mute", "Hang up", "Send"):
            await expect(open_.button(name)).to_be_in_viewport(ratio=1)
        await expect(open_.page.get_by_label("Microphone")).to_be_in_viewport(ratio=1)
        await expect(open_.page.locator("#timeline")).to_be_in_viewport(ratio=1)
        await expect(open_.page.get_by_role("table")).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize(("scheme", "paper"), [("light", "rgb(250, 249, 246)"), ("dark", "rgb(19, 20, 18)")])
async def test_the_page_follows_the_systems_colours(scheme: Literal["light", "dark"], paper: str) -> None:
    async with open_page(color_scheme=scheme) as open_:
        await expect(open_.page.locator("body")).to_have_css("background-color", paper)
