"""How a client's audio is coded: what a session object says of it, in OpenAI's words and in vLLM-Omni's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Coding = Literal["audio/pcm", "audio/pcmu", "audio/pcma"]

PCM_RATES = (8000, 16_000, 24_000, 48_000)
"""Sample rates, in Hz, at which PCM is taken and given. OpenAI has 24,000 only."""

_FLAT: dict[object, tuple[Coding, int]] = {
    "pcm16": ("audio/pcm", 24_000), "g711_ulaw": ("audio/pcmu", 8000), "g711_alaw": ("audio/pcma", 8000)}
"""Names of the beta API, which some clients still send."""


class BadFormatError(ValueError):
    """An audio format that is not spoken here; the text says which are."""


@dataclass(frozen=True, slots=True)
class AudioFormat:
    """Mono audio: little-endian signed 16-bit PCM, or G.711's mu-law (``pcmu``) or A-law (``pcma``)."""

    coding: Coding = "audio/pcm"
    rate: int = 24_000

    def wire(self) -> dict[str, Any]:
        """The format as a session object says it."""
        return {"type": self.coding, "rate": self.rate} if self.coding == "audio/pcm" else {"type": self.coding}


def pcm_at(rate: object) -> AudioFormat:
    """PCM at ``rate`` Hz. Raises ``BadFormatError``."""
    if rate not in PCM_RATES or not isinstance(rate, int):
        raise BadFormatError(f"PCM at {rate!r} Hz is not served: use one of {', '.join(map(str, PCM_RATES))}.")
    return AudioFormat("audio/pcm", rate)


def wanted(session: Mapping[str, Any], way: Literal["input", "output"]) -> AudioFormat | None:
    """The format a ``session.update`` asks for; None when it asks for none. Raises ``BadFormatError``."""
    audio = session.get("audio")
    side = audio.get(way) if isinstance(audio, Mapping) else None
    said = side.get("format") if isinstance(side, Mapping) else None
    if isinstance(said, Mapping):
        return _nested(said)
    flat = said if said is not None else session.get(f"{way}_audio_format")
    rate = side.get("sample_rate_hz") if isinstance(side, Mapping) else None
    if flat is None:
        return None if rate is None else pcm_at(rate)
    if flat not in _FLAT:
        raise BadFormatError(f"The audio format {flat!r} is not served: use pcm16, g711_ulaw or g711_alaw.")
    coding, usual = _FLAT[flat]
    return pcm_at(rate) if coding == "audio/pcm" and rate is not None else AudioFormat(coding, usual)


def _nested(said: Mapping[str, Any]) -> AudioFormat | None:
    match said.get("type", "audio/pcm"):
        case "audio/pcm":
            return pcm_at(said.get("rate") or 24_000)
        case "audio/pcmu" | "audio/pcma" as coding:
            return AudioFormat(coding, 8000)
        case other:
            raise BadFormatError(
                f"The audio format {other!r} is not served: use audio/pcm, audio/pcmu or audio/pcma.")
