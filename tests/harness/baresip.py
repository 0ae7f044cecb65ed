"""A real telephone: baresip calls, plays a microphone's timeline, and keeps what both sides said.

Told what to do over its control socket (JSON in netstrings); its ``sndfile`` module writes what it sends and what it
receives as two wavs, which grow side by side while the call goes on.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median
from typing import Literal

import numpy as np

from tests.harness.microphone import Microphone
from tests.harness.recording import Recording, Track
from tests.harness.server import free_ports
from tests.harness.sound import RATE, Sound, from_pcm, resample, write_wav

CodecName = Literal["PCMU/8000/1", "PCMA/8000/1", "G722/16000/1", "opus/48000/2"]

MODULES = Path("/usr/lib/baresip/modules")
_WAV_HEADER = 44
_TAIL_S = 240.0
_ROOM = 0.001  # level of a quiet room: 60 dB below full scale. No microphone gives digital silence
_LOOK_S = 0.05  # from one look at how the wavs grow to the next
_AROUND = 10  # looks before and after one that say where its sound belongs: more than a burst lasts
_SLACK_S = 0.06

_CONFIG = """
module_path {modules}
sip_listen 127.0.0.1:{sip}
ctrl_tcp_listen 127.0.0.1:{control}
net_interface 127.0.0.1
rtp_ports 31000-33000
jitter_buffer_delay 1-5
call_max_calls 1
audio_source aufile,{folder}/microphone.wav
ausrc_srate {rate}
ausrc_channels 1
opus_bitrate 32000
snd_path {folder}
module g711.so
module g722.so
module opus.so
module aufile.so
module sndfile.so
module srtp.so
module_tmp uuid.so
module_tmp account.so
module_app ctrl_tcp.so
module_app menu.so
"""


@dataclass(frozen=True, slots=True)
class Account:
    """Who calls: a SIP user of the server at ``port``."""

    port: int
    user: str = "alice"
    password: str = ""
    codec: CodecName = "PCMU/8000/1"
    srtp: bool = False


class Baresip:
    """One running telephone."""

    def __init__(self, folder: Path, account: Account, microphone: Microphone) -> None:
        self.microphone = microphone
        self.sip_port = 0
        self._folder = folder
        self._account = account
        self._process: asyncio.subprocess.Process | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._listening: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._grown: list[tuple[int, int]] = []

    async def start(self) -> None:
        """Start it and connect to its control socket."""
        account, folder = self._account, self._folder
        folder.mkdir(parents=True, exist_ok=True)
        # At the codec's own rate: what baresip resamples by itself has aliases in it.
        sound = self.microphone.read(0, self.microphone.length)
        sound = np.concatenate([resample(sound, RATE, self.rate), np.zeros(round(_TAIL_S * self.rate), np.float32)])
        hum = np.random.default_rng(1).normal(0, _ROOM, sound.size)
        write_wav(folder / "microphone.wav", sound + hum.astype(np.float32), self.rate)
        # One port is SIP's, and the next one SIP's over TLS.
        self.sip_port, _, control = free_ports(3)
        (folder / "config").write_text(_CONFIG.format(modules=MODULES, sip=self.sip_port, control=control,
                                                      folder=folder, rate=self.rate))
        options = f";auth_user={account.user};auth_pass={account.password}" if account.password else ""
        options += ";mediaenc=srtp-mand" if account.srtp else ""
        (folder / "accounts").write_text(f"<sip:{account.user}@127.0.0.1:{account.port};transport=udp>"
                                         f";regint=0;answermode=auto;audio_codecs={account.codec}{options}\n")
        (folder / "contacts").write_text("")
        program = shutil.which("baresip")
        if program is None:
            raise RuntimeError("baresip is not installed: sh scripts/system-packages.sh test")
        with (folder / "log").open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                program, "-f", str(folder), stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log)
        for attempt in count():
            try:
                reader, self._writer = await asyncio.open_connection("127.0.0.1", control)
                break
            except OSError:
                if attempt > 200 or self._process.returncode is not None:
                    raise RuntimeError(f"baresip did not come up: {self.log()}") from None
                await asyncio.sleep(0.05)
        self._listening = asyncio.create_task(_discard(reader))
        self._watching = asyncio.create_task(self._watch())

    def log(self) -> str:
        """What it has printed."""
        return (self._folder / "log").read_text(errors="replace")

    async def command(self, name: str, parameter: str = "") -> None:
        """Tell it something: ``dial``, ``hangup``, ``hold``, ``resume``, ``sndcode``."""
        assert self._writer is not None
        body = json.dumps({"command": name, "params": parameter, "token": "test"}).encode()
        self._writer.write(b"%d:%s," % (len(body), body))
        await self._writer.drain()

    async def dial(self) -> None:
        """Call the server and wait until voice flows. Raises ``ConnectionError`` with its log if it does not."""
        await self.command("dial", f"sip:agent@127.0.0.1:{self._account.port}")
        deadline = time.monotonic() + 15
        while not self.heard_s():
            if time.monotonic() > deadline or "session closed" in self.log():
                raise ConnectionError(f"the call did not come about: {self.log()}")
            await asyncio.sleep(0.05)

    async def press(self, keys: str) -> None:
        """Press keys, each for a moment."""
        for key in keys:
            await self.command("sndcode", key)
            await asyncio.sleep(0.35)

    def keys_heard(self) -> str:
        """Keys that the other side pressed, as it told them."""
        return "".join(re.findall(r"received event: '(.)' \(end=0\)", self.log()))

    async def hang_up(self) -> None:
        """Hang up."""
        await self.command("hangup")

    async def stop(self) -> None:
        """End it."""
        if self._writer is not None:
            self._writer.close()
        for task in (self._listening, self._watching):
            if task is not None:
                task.cancel()
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), 5)
            if self._process.returncode is None:
                self._process.kill()
                await self._process.wait()

    # --- what was said and heard ----------------------------------------------------------------------------

    @property
    def rate(self) -> int:
        """Sample rate of what it writes: its codec's."""
        return int(self._account.codec.split("/")[1])

    def said_s(self) -> float:
        """Seconds its microphone has sent."""
        return self._samples("enc") / self.rate

    def heard_s(self) -> float:
        """Seconds it has heard."""
        return self._samples("dec") / self.rate

    async def _watch(self) -> None:
        while True:
            self._grown.append((self._samples("enc"), self._samples("dec")))
            await asyncio.sleep(_LOOK_S)

    def recording(self) -> Recording:
        """Both directions, on the microphone's clock.

        What is received is written end to end, so where packets never came the track would run ahead. Both wavs grow in
        real time: how far one leads the other says where what was heard belongs.
        """
        mic, heard = self._wav("enc"), self._wav("dec")
        agent, taken, lead = Track(), 0, 0
        leads = [said - got for said, got in self._grown if got]
        for index, (_, got) in enumerate(each for each in self._grown if each[1]):
            now = round(median(leads[max(index - _AROUND, 0):index + _AROUND + 1]))
            if not taken or abs(now - lead) > _SLACK_S * self.rate:
                lead = now
            agent.put(max(taken + lead, agent.end), heard[taken:got])
            taken = got
        agent.put(max(taken + lead, agent.end), heard[taken:])
        size = min(mic.size, agent.end)
        return Recording(resample(mic[:size], self.rate, RATE), resample(agent.read(0, size), self.rate, RATE))

    async def until_said(self, sample: int, limit_s: float = 120.0) -> Recording:
        """Wait until the microphone has sent sample ``sample`` (at 48 kHz)."""
        deadline = time.monotonic() + limit_s
        while self.said_s() < sample / RATE:
            if time.monotonic() > deadline:
                raise AssertionError(f"baresip said only {self.said_s():.1f} s: {self.log()[-2000:]}")
            await asyncio.sleep(0.2)
        return self.recording()

    async def until_answered(self, after: int, quiet_s: float = 1.5, limit_s: float = 40.0) -> Recording:
        """Wait until the agent was heard after sample ``after`` and then was quiet for ``quiet_s``."""
        deadline = time.monotonic() + limit_s
        while True:
            recording = await asyncio.to_thread(self.recording)
            if recording.answered(after, quiet_s):
                return recording
            if time.monotonic() > deadline:
                raise AssertionError(f"no answer after sample {after}; agent heard in {recording.replies()}")
            await asyncio.sleep(0.3)

    @property
    def _channels(self) -> int:
        return int(self._account.codec.split("/")[2])

    def _file(self, kind: str) -> Path | None:
        return next(iter(sorted(self._folder.glob(f"dump-*-{kind}.wav"))), None)

    def _samples(self, kind: str) -> int:
        """How much a wav holds so far; its header tells the length only once it is closed."""
        path = self._file(kind)
        return 0 if path is None else max(path.stat().st_size - _WAV_HEADER, 0) // (2 * self._channels)

    def _wav(self, kind: str) -> Sound:
        path = self._file(kind)
        if path is None:
            return np.zeros(0, np.float32)
        data = path.read_bytes()[_WAV_HEADER:]
        whole = len(data) // (2 * self._channels) * 2 * self._channels
        return from_pcm(np.frombuffer(data[:whole], np.int16).reshape(-1, self._channels)[:, 0])


async def _discard(reader: asyncio.StreamReader) -> None:
    while await reader.read(4096):
        pass


@asynccontextmanager
async def baresip(folder: Path, account: Account, microphone: Microphone) -> AsyncIterator[Baresip]:
    """Run a telephone; ``folder`` gets its config, its log and its wavs, and must be its own."""
    phone = Baresip(folder, account, microphone)
    try:
        await phone.start()
        yield phone
    except BaseException as fault:
        with suppress(FileNotFoundError):
            fault.add_note(f"baresip's last words:\n{phone.log()[-2000:]}")
        raise
    finally:
        await phone.stop()
