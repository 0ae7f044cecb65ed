"""The page during a call, in a real Chromium, against a scripted server."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.e2e.page_browser import open_page
from tests.e2e.page_peer import AUDIBLE, TONE_HZ

pytestmark = pytest.mark.e2e

LOUDEST_HZ = """async () => {
  const context = new AudioContext();
  const analyser = context.createAnalyser();
  analyser.fftSize = 8192;
  context.createMediaStreamSource(document.querySelector("audio").srcObject).connect(analyser);
  const spectrum = new Float32Array(analyser.frequencyBinCount);
  for (;;) {
    await new Promise((next) => setTimeout(next, 50));
    analyser.getFloatFrequencyData(spectrum);
    const peak = spectrum.reduce((best, value, at) => (value > spectrum[best] ? at : best), 0);
    if (spectrum[peak] > -40) return peak * context.sampleRate / analyser.fftSize;
  }
}"""
"""The strongest frequency of what the page's audio element is given, once there is sound."""

SPIED_MICROPHONE = """
const open = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
window.opened = [];
navigator.mediaDevices.getUserMedia = async (wanted) => {
  const stream = await open(wanted);
  window.opened.push({ wanted, track: stream.getAudioTracks()[0] });
  return stream;
};
"""
"""Keeps what the page asked for and was given as its microphone."""


async def test_a_call_carries_voice_both_ways_and_the_agents_through_an_audio_element() -> None:
    async with open_page() as open_:
        call, _ = await open_.call()
        await call.until(lambda call: call.loudness > AUDIBLE, "the caller is heard")
        hertz = await open_.page.evaluate(LOUDEST_HZ)
        assert hertz == pytest.approx(TONE_HZ, abs=10)
        playing = "(() => { const a = document.querySelector('audio'); return !a.paused && !a.muted && a.volume; })()"
        assert await open_.page.evaluate(playing) == 1
        await expect(open_.page.locator("header")).to_contain_text("scripted")


async def test_the_microphone_is_opened_for_speech_with_echo_cancelled() -> None:
    async with open_page(init=SPIED_MICROPHONE) as open_:
        await open_.call()
        assert await open_.page.evaluate("window.opened.map(({ wanted }) => wanted)") == [{"audio": {
            "echoCancellation": True, "noiseSuppression": True, "autoGainControl": True, "channelCount": 1}}]


async def test_the_page_opts_in_to_the_servers_own_events_and_to_nothing_else() -> None:
    async with open_page() as open_:
        call, _ = await open_.call()
        assert call.received == [
            {"type": "session.update", "session": {"type": "realtime", "duologue": {"events": True}}}]


async def test_mute_silences_the_microphone_by_button_and_by_key() -> None:
    async with open_page() as open_:
        call, _ = await open_.call()
        await call.until(lambda call: call.loudness > AUDIBLE, "the caller is heard")
        await open_.button("Mute").click()
        await expect(open_.button("Mute")).to_have_attribute("aria-pressed", "true")
        await expect(open_.page).to_have_title("Muted · Duologue")
        # Chromium's microphone beeps twice a second.
        await call.until(lambda call: call.quiet_frames > 75, "the caller falls silent")
        await open_.page.keyboard.press("m")
        await expect(open_.button("Mute")).to_have_attribute("aria-pressed", "false")
        await call.until(lambda call: call.loudness > AUDIBLE, "the caller is heard again")


async def test_the_agents_state_is_shown_in_words_and_in_the_title() -> None:
    async with open_page() as open_:
        _, script = await open_.call()
        for state, words in [("thinking", "Thinking"), ("speaking", "Speaking"), ("ducked", "Speaking softly"),
                             ("paused", "Paused"), ("listening", "Listening")]:
            script.state(state)
            await open_.shows(state=state, text=words)
            await expect(open_.page).to_have_title(f"{words} · Duologue")


async def test_captions_of_both_sides_settle_and_mark_where_a_reply_was_interrupted() -> None:
    async with open_page() as open_:
        _, script = await open_.call()
        item = script.caller_begins()
        script.caller_partial(item, "tell me a tory")
        line = open_.captions.get_by_role("article").first
        await expect(line).to_have_attribute("data-final", "false")
        await expect(line).to_contain_text("tell me a tory")
        script.caller_done(item, "Tell me a story.")
        await expect(line).to_have_attribute("data-final", "true")
        await expect(line.locator("p")).to_have_text("Tell me a story.")

        reply = script.reply_begins("Once upon a time ", "there was a keeper.")
        said = open_.captions.get_by_role("article").nth(1)
        await expect(said.locator("p")).to_have_text("Once upon a time there was a keeper.")
        script.reply_cut(reply, "Once upon a time there was a keeper.", "Once upon a time ")
        await expect(said).to_have_attribute("data-interrupted", "true")
        await expect(said.locator("p")).to_have_text(
            "Once upon a time interrupted here Not heard: there was a keeper.")
        await expect(said.locator("del")).to_contain_text("there was a keeper.")
        await expect(open_.captions).to_have_attribute("aria-live", "polite")


async def test_the_newest_caption_is_in_view_unless_the_reader_has_scrolled_up() -> None:
    async with open_page() as open_:
        _, script = await open_.call()
        for number in range(30):
            script.caller_says(f"Utterance {number}.")
        await expect(open_.captions.get_by_text("Utterance 29.")).to_be_in_viewport()
        await open_.captions.evaluate("log => log.scrollTo(0, 0)")
        script.caller_says("One more.")
        await expect(open_.captions.get_by_text("One more.")).to_be_attached()
        await expect(open_.captions.get_by_text("Utterance 0.")).to_be_in_viewport()


async def test_latencies_of_this_call_are_shown_with_their_quantiles() -> None:
    async with open_page() as open_:
        _, script = await open_.call()
        script.latency("voice_to_voice", 300, 900, 500)
        script.latency("stop", 140)
        row = open_.page.get_by_role("row", name="Voice to voice")
        await expect(row.get_by_role("cell")).to_have_text(["500 ms", "500 ms", "900 ms"])
        await expect(open_.page.get_by_role("row", name="Stop").get_by_role("cell")).to_have_text(["140 ms"] * 3)


async def test_the_timeline_is_drawn_and_told_in_words() -> None:
    async with open_page() as open_:
        _, script = await open_.call()
        script.state("speaking")
        script.units(10, choice="speak")
        script.units(5, choice="speak", speech=0.9)
        script.state("listening")
        script.units(5)
        timeline = open_.page.get_by_role("img", name="Last minute: you spoke 1.0 seconds, the agent 3.0 seconds, "
                                          "both at once 1.0 seconds; 0 interruptions.")
        await expect(timeline).to_be_visible()


async def test_typed_words_are_sent_as_an_item_with_a_wish_for_a_reply() -> None:
    async with open_page() as open_:
        call, _ = await open_.call()
        field = open_.page.get_by_label("Type instead of speaking")
        await field.fill("What is six times seven?")
        await field.press("Enter")
        await call.until(lambda call: bool(call.got("response.create")), "the page asks for a reply")
        item = {"type": "message", "role": "user",
                "content": [{"type": "input_text", "text": "What is six times seven?"}]}
        assert call.got("conversation.item.create") == [{"type": "conversation.item.create", "item": item}]
        await expect(field).to_have_value("")
        call.say({"type": "conversation.item.added", "item": {"id": "item_9", **item}})
        await expect(open_.captions).to_contain_text("What is six times seven?")


async def test_the_letter_m_in_typed_words_mutes_nobody() -> None:
    async with open_page() as open_:
        await open_.call()
        await open_.page.get_by_label("Type instead of speaking").press_sequentially("mmm")
        await expect(open_.button("Mute")).to_have_attribute("aria-pressed", "false")


async def test_messages_that_are_no_events_disturb_nothing() -> None:
    async with open_page() as open_:
        call, script = await open_.call()
        for text in ("{", "null", "[]", '{"type":"response.done","response":null}', '{"type":"toString"}',
                     '{"type":"conversation.item.added","item":{"id":"a","type":"message","role":"user","content":3}}'):
            call.garble(text)
        script.caller_says("Still here.")
        await expect(open_.captions).to_contain_text("Still here.")


async def test_a_complaint_of_the_server_and_a_stage_that_restarts_are_told_in_passing() -> None:
    async with open_page() as open_:
        call, script = await open_.call()
        call.say({"type": "error", "error": {"type": "invalid_request_error", "message": "That was too long."}})
        await open_.shows(state="listening", text="That was too long.")
        call.say({"type": "duologue.health", "stage": "talker", "up": False})
        await open_.shows(state="listening", text="The talker is restarting. The call goes on.")
        call.say({"type": "duologue.health", "stage": "talker", "up": True})
        script.state("thinking")
        await open_.shows(state="thinking", text="You can go on speaking.")


async def test_hanging_up_gives_the_call_and_the_microphone_back_and_keeps_the_conversation() -> None:
    async with open_page(init=SPIED_MICROPHONE) as open_:
        call, script = await open_.call()
        script.caller_says("Goodbye.")
        await expect(open_.captions).to_contain_text("Goodbye.")
        await open_.button("Hang up").click()
        await call.until(lambda call: call.released, "the page gives the call back")
        await open_.shows(state="ended", text="Call ended")
        assert await open_.page.evaluate("window.opened.map(({ track }) => track.readyState)") == ["ended"]
        await expect(open_.captions).to_contain_text("Goodbye.")

        await open_.call(2)
        await expect(open_.captions).not_to_contain_text("Goodbye.")


async def test_leaving_the_page_gives_the_call_back() -> None:
    async with open_page() as open_:
        call, _ = await open_.call()
        await open_.page.goto("about:blank")
        await call.until(lambda call: call.released, "the page gives the call back")


async def test_a_double_click_on_call_makes_one_call_and_does_not_end_it() -> None:
    async with open_page() as open_:
        await open_.button("Call").dblclick()
        await open_.server.call()
        await open_.shows(state="listening")
        assert len(open_.server.tickets) == 1


async def test_the_chosen_microphone_is_used_at_once_and_remembered() -> None:
    async with open_page(init=SPIED_MICROPHONE) as open_:
        call, _ = await open_.call()
        picker = open_.page.get_by_label("Microphone")
        await expect(picker.locator("option").nth(1)).to_be_attached()
        chosen = await picker.locator("option").nth(1).get_attribute("value")
        assert chosen
        await picker.select_option(chosen)
        await open_.until("window.opened.length === 2")
        assert await open_.page.evaluate("window.opened[1].track.getSettings().deviceId") == chosen
        await open_.until("window.opened[0].track.readyState === 'ended'")
        await call.until(lambda call: call.loudness > AUDIBLE, "the caller is heard")

        await open_.page.reload()
        await open_.call(2)
        assert await open_.page.evaluate("window.opened[0].track.getSettings().deviceId") == chosen
        await expect(picker).to_have_value(chosen)


async def test_a_remembered_microphone_that_is_not_there_any_more_keeps_nobody_from_calling() -> None:
    async with open_page(init=SPIED_MICROPHONE) as open_:
        await open_.page.evaluate("localStorage.setItem('duologue.microphone', 'left at home')")
        await open_.page.reload()
        await open_.call()
        assert await open_.page.evaluate("window.opened.map(({ track }) => track.getSettings().deviceId)") == [
            "default"]


async def test_a_microphone_that_is_unplugged_is_replaced_by_the_systems_choice() -> None:
    async with open_page(init=SPIED_MICROPHONE) as open_:
        call, _ = await open_.call()
        await open_.button("Mute").click()
        await open_.page.evaluate("window.opened[0].track.dispatchEvent(new Event('ended'))")
        await open_.until("window.opened.length === 2")
        await open_.until("window.opened[1].track.enabled === false")
        await open_.button("Mute").click()
        await call.until(lambda call: call.loudness > AUDIBLE, "the caller is heard")


async def test_a_browser_that_refuses_to_play_by_itself_gets_a_button() -> None:
    refuse_once = """
    const play = HTMLMediaElement.prototype.play;
    HTMLMediaElement.prototype.play = async function () {
      HTMLMediaElement.prototype.play = play;
      throw new DOMException("no gesture", "NotAllowedError");
    };
    """
    async with open_page(init=refuse_once) as open_:
        await open_.call()
        paused = "document.querySelector('audio').paused"
        await expect(open_.button("Tap to hear the agent")).to_be_visible()
        assert await open_.page.evaluate(paused) is True
        await open_.button("Tap to hear the agent").click()
        await expect(open_.button("Tap to hear the agent")).to_be_hidden()
        assert await open_.page.evaluate(paused) is False


async def test_the_screen_stays_on_during_a_call_and_no_longer() -> None:
    spied = """
    window.lock = "none";
    navigator.wakeLock.request = async () => {
      window.lock = "held";
      return { release: async () => { window.lock = "released"; } };
    };
    """
    async with open_page(init=spied) as open_:
        assert await open_.page.evaluate("window.lock") == "none"
        await open_.call()
        await open_.until("window.lock === 'held'")
        await open_.button("Hang up").click()
        await open_.until("window.lock === 'released'")
