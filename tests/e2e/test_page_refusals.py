"""What the page says when there is no call, and how one gets out of it again."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.e2e.page_browser import open_page
from tests.e2e.page_peer import Event, Refusal

pytestmark = pytest.mark.e2e


def refusal(code: str, message: str = "No.") -> Event:
    """An error in the server's form."""
    return {"error": {"type": "server_error", "code": code, "message": message, "param": None}}


def waiting(position: int, eta_s: float | None) -> Refusal:
    """A place in the queue."""
    return 503, {**refusal("capacity"), "queue": {"ticket": "ticket-7", "position": position, "eta_s": eta_s}}


async def test_a_caller_in_the_queue_sees_the_place_move_up_and_gets_the_call_with_the_ticket() -> None:
    async with open_page() as open_:
        open_.server.refusals = [waiting(2, 42.0), waiting(1, None)]
        await open_.button("Call").click()
        await open_.shows(state="queued", text="You are number 2 in the queue. Your turn comes in about 40 seconds.")
        await open_.shows(state="queued", text="You are next in the queue.")
        await open_.server.call()
        await open_.shows(state="listening")
        assert open_.server.tickets == [None, "ticket-7", "ticket-7"]


async def test_a_caller_may_leave_the_queue_and_is_not_called_afterwards() -> None:
    async with open_page() as open_:
        open_.server.refusals = [waiting(2, None)]
        await open_.button("Call").click()
        await open_.button("Leave the queue").click()
        await open_.shows(state="idle", text="Talk with the agent")
        # A second attempt, to its end: an offer of the first one would have come in between.
        open_.server.refusals = [waiting(1, None)]
        await open_.button("Call").click()
        await open_.server.call()
        assert open_.server.tickets == [None, None, "ticket-7"]


async def test_a_refused_call_says_why_and_can_be_tried_again() -> None:
    async with open_page() as open_:
        alert = open_.page.get_by_role("alert")
        for button, code, label, hint in [
            ("Call", "queue_full", "All lines are busy", "The queue is full too."),
            ("Call again", "draining", "The server is about to restart", "It takes no new calls."),
            ("Call again", "stage_down", "The agent is not ready", "A part of it is being restarted."),
            ("Call again", "model_not_found", "The call was not accepted", "There is no such model here."),
        ]:
            open_.server.refusals = [(503, refusal(code, "There is no such model here."))]
            await open_.button(button).click()
            await expect(alert).to_contain_text(label)
            await expect(alert).to_contain_text(hint)
            await expect(open_.page).to_have_title(f"{label} · Duologue")
        await open_.call()
        await open_.shows(state="listening")
        await expect(alert).to_be_empty()


async def test_a_refused_microphone_says_where_to_allow_it() -> None:
    async with open_page(flags=("--use-fake-device-for-media-stream", "--deny-permission-prompts")) as open_:
        await open_.button("Call").click()
        alert = open_.page.get_by_role("alert")
        await expect(alert).to_contain_text("The microphone is blocked")
        await expect(alert).to_contain_text("set Microphone to Allow")
        assert open_.server.tickets == []


@pytest.mark.parametrize(("error", "label"), [
    ("NotFoundError", "No microphone found"), ("NotReadableError", "The microphone cannot be used")])
async def test_a_microphone_that_cannot_be_had_is_told_apart(error: str, label: str) -> None:
    broken = f"navigator.mediaDevices.getUserMedia = async () => {{ throw new DOMException('', '{error}'); }};"
    async with open_page(init=broken) as open_:
        await open_.button("Call").click()
        await expect(open_.page.get_by_role("alert")).to_contain_text(label)
        await expect(open_.button("Call again")).to_be_enabled()


@pytest.mark.parametrize(("lacking", "label"), [
    ("delete window.RTCPeerConnection", "This browser cannot make calls"),
    ("Object.defineProperty(window, 'isSecureContext', { value: false })", "This address is not secure")])
async def test_a_browser_that_cannot_call_is_told_so_before_it_tries(lacking: str, label: str) -> None:
    async with open_page(init=lacking) as open_:
        await expect(open_.page.get_by_role("alert")).to_contain_text(label)
        await expect(open_.page.locator("#call")).to_be_disabled()


async def test_a_server_that_does_not_answer_is_told_apart_from_one_that_refuses() -> None:
    async with open_page() as open_:
        await open_.page.route("**/v1/realtime/calls", lambda route: route.abort())
        await open_.button("Call").click()
        await expect(open_.page.get_by_role("alert")).to_contain_text("The server does not answer")


async def test_an_answer_that_is_no_sdp_ends_the_attempt_in_words() -> None:
    async with open_page() as open_:
        await open_.page.route("**/v1/realtime/calls", lambda route: route.fulfill(status=201, body="hello"))
        await open_.button("Call").click()
        await expect(open_.page.get_by_role("alert")).to_contain_text(
            "The browser could not use the server’s answer.")


async def test_a_server_that_ends_the_call_is_told_apart_from_a_lost_connection() -> None:
    async with open_page() as open_:
        call, _ = await open_.call()
        await call.close()
        await expect(open_.page.get_by_role("alert")).to_contain_text("The server ended the call")
        await open_.call(2)


async def test_a_lost_connection_is_noticed_and_the_caller_may_call_again() -> None:
    async with open_page() as open_:
        call, script = await open_.call()
        script.caller_says("Are you there?")
        await expect(open_.captions).to_contain_text("Are you there?")
        await call.vanish()
        await expect(open_.page.get_by_role("alert")).to_contain_text("The connection was lost")
        await expect(open_.captions).to_contain_text("Are you there?")
        await open_.call(2)
        await open_.shows(state="listening")
