"""What is asked of the LiveKit server itself: to end telephone calls."""

from __future__ import annotations

import asyncio

import aiohttp
from livekit import api

from duologue.agent.logs import EventLog
from duologue.agent.transports.livekit.config import LiveKitConfig

_ASK_LIMIT_S = 5.0

_log = EventLog(__name__)


class RoomService:
    """The server's API; faults of it are logged and cost nothing but what was asked for."""

    def __init__(self, config: LiveKitConfig) -> None:
        """To be made on a running event loop."""
        self._after_sip_call = config.after_sip_call
        self._api = api.LiveKitAPI(config.url, config.api_key, config.api_secret.get_secret_value())

    async def end_phone_call(self, room: str, identity: str) -> None:
        """Hang up the telephone that is in ``room`` as ``identity``, in the way that was configured."""
        try:
            async with asyncio.timeout(_ASK_LIMIT_S):
                if self._after_sip_call == "remove_caller":
                    await self._api.room.remove_participant(api.RoomParticipantIdentity(room=room, identity=identity))
                elif self._after_sip_call == "delete_room":
                    await self._api.room.delete_room(api.DeleteRoomRequest(room=room))
        except (api.ServerError, aiohttp.ClientError, TimeoutError) as fault:
            _log.warning("phone_not_hung_up", room=room, why=str(fault))

    async def close(self) -> None:
        """Free its connections."""
        await self._api.aclose()
