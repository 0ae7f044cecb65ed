"""A caller in a real headless Chromium who joins a LiveKit room with livekit-client, as an application's page would."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.harness.browser import BrowserCall, open_page
from tests.harness.livekit import EVENTS, LiveKitProcess
from tests.harness.microphone import Microphone

CLIENT = Path(__file__).parents[2] / "node_modules" / "livekit-client" / "dist" / "livekit-client.umd.js"

_JOIN = """async ({ url, token, topic }) => {
  const { Room, RoomEvent } = LivekitClient;
  const room = new Room();
  window.room = room;
  window.captions = [];
  window.states = [];
  const encoder = new TextEncoder();
  room.on(RoomEvent.TrackSubscribed, (track) => document.body.append(track.attach()));
  room.on(RoomEvent.DataReceived, (bytes, _who, _kind, about) => {
    if (about === topic) window.recordMessage(new TextDecoder().decode(bytes));
  });
  room.on(RoomEvent.ParticipantAttributesChanged, (changed, who) => {
    if (who.isAgent && changed["lk.agent.state"]) window.states.push(changed["lk.agent.state"]);
  });
  room.registerTextStreamHandler("lk.transcription", async (reader, { identity }) => {
    const caption = { identity, segment: reader.info.attributes["lk.segment_id"], text: "" };
    window.captions.push(caption);
    caption.text = await reader.readAll();
    caption.final = reader.info.attributes["lk.transcription_final"] === "true";
  });
  window.tell = (event) =>
    room.localParticipant.publishData(encoder.encode(JSON.stringify(event)), { reliable: true, topic });
  await room.connect(url, token);
  await room.localParticipant.setMicrophoneEnabled(true);
}"""


class RoomPage(BrowserCall):
    """A call from a browser through a room."""

    async def join(self, server: LiveKitProcess, token: str) -> None:
        """Enter the room; the microphone runs from then on."""
        await self.page.goto(f"http://127.0.0.1:{server.port}/")
        await self.page.add_script_tag(path=CLIENT)
        await self.page.evaluate(_JOIN, {"url": server.url, "token": token, "topic": EVENTS})

    async def tell(self, event: dict[str, Any]) -> None:
        """Send a Realtime event."""
        await self.page.evaluate("(event) => window.tell(event)", event)

    async def captions(self) -> list[dict[str, Any]]:
        """Streams of captions so far: identity, segment, text, final."""
        found: list[dict[str, Any]] = await self.page.evaluate("window.captions")
        return found

    async def agent_states(self) -> list[str]:
        """The agent's states so far."""
        found: list[str] = await self.page.evaluate("window.states")
        return found

    async def hang_up(self) -> None:
        """Leave the room."""
        await self.page.evaluate("window.room.disconnect()")


@asynccontextmanager
async def room_page(server: LiveKitProcess, room: str, microphone: Microphone) -> AsyncIterator[RoomPage]:
    """Join ``room`` from a browser."""
    async with open_page(microphone) as opened:
        call = RoomPage(opened.page, microphone)
        await call.join(server, server.token(room, "browser"))
        yield call
