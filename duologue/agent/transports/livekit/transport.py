"""One call in one LiveKit room: joins it for a job, hears the linked participant, speaks on one track."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import numpy as np
from livekit import rtc

from duologue.agent.logs import EventLog
from duologue.agent.transports.base import FRAME_MS, CallMedia
from duologue.agent.transports.control_channel import LABEL
from duologue.agent.transports.livekit.config import GuestKind, LiveKitConfig
from duologue.agent.transports.livekit.linking import CALL_STATUS, Change, Linked, Linking, Vacant
from duologue.agent.transports.livekit.outbox import RoomOutbox, Speaker
from duologue.agent.transports.livekit.projection import AgentState, Caption, Notice, RoomProjection
from duologue.agent.transports.livekit.service import RoomService
from duologue.agent.transports.livekit.voice import PUBLISH, CallerTrack, ReplyTrack, TelephoneBand
from duologue.engine import INPUT_RATE, Pcm
from duologue.metrics import DROPS

CONNECT_TIMEOUT_S = 5.0
"""How long each of the SDK's attempts to join may take, and publishing a track; joining took 0.06-0.7 s where it was
measured."""

SUBSCRIPTION_WAIT_S = 3.0
"""The call begins although nobody has subscribed to our track so long after a caller was linked."""

_CLOSE_TIMEOUT_S = 5.0
_SILENCE = np.zeros(INPUT_RATE * FRAME_MS // 1000, np.int16)

_KINDS: dict[int, GuestKind] = {
    rtc.ParticipantKind.PARTICIPANT_KIND_STANDARD: "standard",
    rtc.ParticipantKind.PARTICIPANT_KIND_SIP: "sip",
    rtc.ParticipantKind.PARTICIPANT_KIND_CONNECTOR: "connector",
}

_VOICES = (rtc.TrackSource.SOURCE_MICROPHONE, rtc.TrackSource.SOURCE_UNKNOWN)
"""Tracks that may be a caller's voice; the sound of a shared screen is none."""

_FINAL_REASONS = (rtc.DisconnectReason.CLIENT_INITIATED, rtc.DisconnectReason.PARTICIPANT_REMOVED,
                  rtc.DisconnectReason.USER_UNAVAILABLE, rtc.DisconnectReason.USER_REJECTED,
                  rtc.DisconnectReason.SIP_TRUNK_FAILURE)
"""Why a participant went that will not come back by itself."""

_OUR_REASONS = {
    rtc.DisconnectReason.PARTICIPANT_REMOVED: "removed",
    rtc.DisconnectReason.ROOM_DELETED: "room deleted",
    rtc.DisconnectReason.ROOM_CLOSED: "room closed",
}

_log = EventLog(__name__)


class LiveKitTransport:
    """One caller in one room. ``join`` enters it; ``connected``, ``feed`` and ``gone`` of the call follow.

    ``gone`` is called exactly once, whoever ends the call, with the reason ``hung up`` (the caller left), ``lost``,
    ``nobody came``, ``room deleted``, ``room closed``, ``removed``, ``never connected``, ``media fault``, ``dismissed``
    (the job was taken back) or ``closed`` (by ``close``).
    """

    def __init__(self, call_id: str, config: LiveKitConfig, call: CallMedia, service: RoomService, *,
                 own_events: bool = False) -> None:
        """``own_events`` says whether the room's clients asked for our own events."""
        self._log = _log.of(call_id)
        self._call_id = call_id
        self._config = config
        self._call = call
        self._service = service
        self._projection = RoomProjection(own_events=own_events)
        self._linking = Linking(config.link)
        self._room = rtc.Room()
        self._outbox: RoomOutbox | None = None
        self._publication: rtc.LocalTrackPublication | None = None
        self._reply: ReplyTrack | None = None
        self._caller: CallerTrack | None = None
        self._away = False
        self._audible = False
        self._begun = False
        self._ended = False
        self._joining: asyncio.Task[None] | None = None
        self._listened: asyncio.Task[None] | None = None
        self._teardown: asyncio.Task[None] | None = None
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._closings: set[asyncio.Task[None]] = set()
        self._over = asyncio.Event()
        self.outcome = ""
        """Why the call ended; empty while it has not."""

    @property
    def name(self) -> str:
        """``livekit``."""
        return "livekit"

    def join(self, url: str, token: str) -> None:
        """Enter the room that ``token`` is for. What goes wrong ends the call as ``never connected``."""
        if not self._ended:
            self._joining = asyncio.get_running_loop().create_task(self._join(url, token))

    def send(self, message: str) -> None:
        """Tell the room of an event of the call (JSON text); dropped and counted until the room is joined."""
        if not self._ended:
            for notice in self._projection.outgoing(message):
                self._tell(notice)

    def dismiss(self) -> None:
        """End the call because its job was taken back, or never came."""
        self._end("dismissed")

    async def close(self) -> None:
        """End the call from our side and wait until everything is freed; idempotent."""
        self._end("closed")
        await self.wait_closed()

    async def wait_closed(self) -> None:
        """Wait until everything is freed."""
        await self._over.wait()

    # --- setting up ----------------------------------------------------------------------------------------

    async def _join(self, url: str, token: str) -> None:
        room = self._room
        for name, handler in self._handlers().items():
            room.on(name, handler)  # type: ignore[arg-type]
        try:
            # Only who is heard is subscribed to, and nobody's camera. A connect must not be cancelled: it would leave
            # its subscription behind in the SDK.
            await room.connect(url, token, rtc.RoomOptions(auto_subscribe=False, connect_timeout=CONNECT_TIMEOUT_S))
            self._outbox = RoomOutbox(room.local_participant, self._call_id)
            reply = self._reply = ReplyTrack(self._call, self._tick, self._fault)
            reply.start()
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                self._publication = await room.local_participant.publish_track(reply.track, PUBLISH)
        except Exception as fault:
            self._log.warning("not_joined", why=repr(fault))
            self._end("never connected")
            return
        if self._ended:
            return
        self._log.info("joined", room=room.name)
        self._listened = asyncio.get_running_loop().create_task(self._await_listener(self._publication))
        for guest in list(room.remote_participants.values()):
            self._on_guest(guest)
        if self._linking.linked is None:
            self._after("caller", self._config.caller_wait_s, lambda: self._end("nobody came"))

    def _handlers(self) -> dict[str, Callable[..., None]]:
        return {
            "participant_connected": self._on_guest,
            "participant_disconnected": self._on_guest_gone,
            "participant_attributes_changed": self._on_attributes,
            "track_published": self._on_published,
            "track_subscribed": self._on_subscribed,
            "track_unsubscribed": self._on_unsubscribed,
            "data_received": self._on_data,
            "sip_dtmf_received": self._on_key,
            "reconnecting": self._on_reconnecting,
            "reconnected": self._on_reconnected,
            "disconnected": self._on_disconnected,
        }

    async def _await_listener(self, publication: rtc.LocalTrackPublication) -> None:
        """Let the call begin once somebody would hear it: what is said earlier is lost."""
        await publication.wait_for_subscription()
        self._audible = True
        self._begin()

    def _begin(self) -> None:
        if self._begun or self._ended or self._linking.linked is None or not self._audible:
            return
        self._begun = True
        self._cancel("subscription")
        self._log.info("connected", on_the_phone=self._linking.on_the_phone)
        self._tell(AgentState("listening"))
        self._guarded(self._call.connected)

    # --- who is heard --------------------------------------------------------------------------------------

    def _on_guest(self, guest: rtc.RemoteParticipant) -> None:
        self._relink(self._linking.joined(guest.identity, _KINDS.get(guest.kind, "other"),
                                          guest.attributes.get(CALL_STATUS, "")))

    def _on_guest_gone(self, guest: rtc.RemoteParticipant) -> None:
        may_return = guest.disconnect_reason not in _FINAL_REASONS
        self._relink(self._linking.left(guest.identity, may_return=may_return))

    def _on_attributes(self, changed: dict[str, str], guest: rtc.Participant) -> None:
        self._relink(self._linking.status(guest.identity, changed.get(CALL_STATUS, "")))

    def _relink(self, change: Change) -> None:
        match change:
            case Linked(identity):
                self._cancel("caller")
                self._log.info("linked", on_the_phone=self._linking.on_the_phone)
                self._subscribe(identity)
                self._begin()
                if not self._begun:
                    self._after("subscription", SUBSCRIPTION_WAIT_S, self._begin_unheard)
            case Vacant(may_return):
                self._mute()
                self._log.info("caller_gone", may_return=may_return)
                self._vacant(may_return)
            case None:
                pass

    def _subscribe(self, identity: str) -> None:
        guest = self._room.remote_participants[identity]
        for publication in list(guest.track_publications.values()):
            self._on_published(publication, guest)

    def _begin_unheard(self) -> None:
        self._audible = True
        self._begin()

    def _vacant(self, may_return: bool) -> None:
        if not may_return:
            self._end("hung up")
        elif not self._away:
            self._await_return()

    def _await_return(self) -> None:
        self._after("caller", self._config.rejoin_wait_s, lambda: self._end("lost"))

    def _on_published(self, publication: rtc.RemoteTrackPublication, guest: rtc.RemoteParticipant) -> None:
        if guest.identity == self._linking.linked and _is_voice(publication):
            publication.set_subscribed(True)
            if isinstance(publication.track, rtc.RemoteAudioTrack):
                self._hear(publication.track)

    def _on_subscribed(self, track: rtc.Track, publication: rtc.RemoteTrackPublication,
                       guest: rtc.RemoteParticipant) -> None:
        if guest.identity == self._linking.linked and isinstance(track, rtc.RemoteAudioTrack):
            self._hear(track)

    def _on_unsubscribed(self, track: rtc.Track, _publication: rtc.RemoteTrackPublication,
                         _guest: rtc.RemoteParticipant) -> None:
        if self._caller is not None and self._caller.track is track:
            self._mute()

    def _hear(self, track: rtc.RemoteAudioTrack) -> None:
        if self._ended or (self._caller is not None and self._caller.track is track):
            return
        self._mute()
        treat = TelephoneBand().widen if self._linking.on_the_phone else None
        self._caller = CallerTrack(track, self._feed, self._fault, treat)

    def _mute(self) -> None:
        """Hear nobody."""
        if self._caller is not None:
            task = asyncio.get_running_loop().create_task(self._caller.close())
            self._closings.add(task)
            task.add_done_callback(self._closings.discard)
            self._caller = None

    # --- while it lasts ------------------------------------------------------------------------------------

    def _feed(self, pcm: Pcm) -> None:
        if self._begun and not self._ended and not self._away:
            self._call.feed(pcm)

    def _tick(self) -> Pcm | None:
        """One clock for both ways. While the room is away time stands still: nothing is played to nobody."""
        if self._away or self._ended:
            return None
        if not self._begun:
            return np.zeros(self._call.output_rate * FRAME_MS // 1000, np.int16)
        if self._caller is None:
            self._call.feed(_SILENCE, _SILENCE.size)
        return self._call.pull()

    def _tell(self, notice: Notice) -> None:
        if self._outbox is None:
            DROPS.labels(what="event", reason="no_channel").inc()
            return
        self._outbox.put(notice, self._who_speaks(notice))

    def _who_speaks(self, notice: Notice) -> Speaker:
        if isinstance(notice, Caption) and notice.by_caller:
            track = self._caller.track.sid if self._caller is not None else ""
            return Speaker(self._linking.linked or self._room.local_participant.identity, track)
        ours = self._publication.sid if self._publication is not None else ""
        return Speaker(self._room.local_participant.identity, ours)

    def _on_data(self, packet: rtc.DataPacket) -> None:
        if packet.topic != LABEL or packet.participant is None:
            return
        if packet.participant.identity != self._linking.linked:
            DROPS.labels(what="message", reason="not_the_caller").inc()
            return
        try:
            text = packet.data.decode()
        except UnicodeDecodeError:
            DROPS.labels(what="message", reason="binary").inc()
            return
        self._guarded(lambda: self._call.receive(self._projection.incoming(text)))

    def _on_key(self, key: rtc.SipDTMF) -> None:
        if key.participant is not None and key.participant.identity == self._linking.linked and self._begun:
            self._guarded(lambda: self._call.dtmf(key.digit))

    def _on_reconnecting(self) -> None:
        self._log.warning("room_away")
        self._away = True
        self._cancel("caller")
        self._after("room", self._config.away_wait_s, lambda: self._end("lost"))

    def _on_reconnected(self) -> None:
        self._log.info("room_back")
        self._away = False
        self._cancel("room")
        if self._linking.linked is None:
            self._await_return()
        else:
            self._subscribe(self._linking.linked)  # what was asked for before the room was back may have been lost

    # --- the end -------------------------------------------------------------------------------------------

    def _on_disconnected(self, reason: rtc.DisconnectReason.ValueType) -> None:
        self._end(_OUR_REASONS.get(reason, "lost"))

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as fault:
            self._fault(fault)

    def _fault(self, fault: Exception) -> None:
        """Something of this call failed: it ends, the others go on."""
        if not self._ended:
            self._log.error("media_fault", fault=fault)
        self._end("media fault")

    def _end(self, reason: str) -> None:
        if self._ended:
            return
        self._ended = True
        self.outcome = reason
        self._log.info("ended", reason=reason)
        for what in list(self._timers):
            self._cancel(what)
        on_the_phone = self._linking.linked if self._linking.on_the_phone else None
        self._teardown = asyncio.get_running_loop().create_task(self._free(on_the_phone))
        try:
            self._call.gone(reason)
        except Exception as fault:
            self._log.error("gone_failed", fault=fault)

    async def _free(self, on_the_phone: str | None) -> None:
        """Give everything back; ``on_the_phone`` is a telephone caller who is still on the line."""
        try:
            if self._joining is not None:
                await self._joining
            if self._listened is not None:
                self._listened.cancel()
            self._mute()
            if self._outbox is not None:
                await self._outbox.close()
            if self._reply is not None:
                await self._reply.close()
            await asyncio.gather(*self._closings)
            if on_the_phone is not None and self._room.isconnected():
                await self._service.end_phone_call(self._room.name, on_the_phone)
            async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                await self._room.disconnect()
        except Exception as fault:
            self._log.error("close_failed", fault=fault)
        finally:
            self._over.set()

    def _after(self, what: str, delay_s: float, then: Callable[[], None]) -> None:
        self._cancel(what)
        self._timers[what] = asyncio.get_running_loop().call_later(delay_s, then)

    def _cancel(self, what: str) -> None:
        timer = self._timers.pop(what, None)
        if timer is not None:
            timer.cancel()


def _is_voice(publication: rtc.RemoteTrackPublication) -> bool:
    return publication.kind == rtc.TrackKind.KIND_AUDIO and publication.source in _VOICES
