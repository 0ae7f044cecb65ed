"""A caller for the thinker: speaks with flite's voices, hears replies at a steady pace, cuts them on a yield."""

from __future__ import annotations

import subprocess
import wave
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from duologue.engine.config import PipelineConfig, StageConfig
from duologue.engine.messages import (
    INPUT_RATE,
    AppendUnit,
    CallerText,
    CallerWords,
    Choice,
    Close,
    Decision,
    HistoryItem,
    Inject,
    Interrupt,
    Open,
    Pcm,
    ReplyText,
    StageOutput,
    Tool,
    ToolCall,
    Unit,
)
from duologue.engine.models.embedded.thinker import Thinker
from duologue.engine.wire import session_of

UNIT_MS = 80
SAMPLES = INPUT_RATE * UNIT_MS // 1000
WORDS_PER_UNIT = 0.2
"""2.5 words a second."""
PIPELINE = PipelineConfig(
    name="test", unit_ms=UNIT_MS, output_rate=16000,
    stages=(StageConfig(name="thinker", role="thinker", model="embedded.thinker", process="hearing"),))


@cache
def speech(voice: str, text: str, *, phones: bool = False) -> Pcm:
    """``text``, or a row of phones, spoken by a voice of flite, without the silence around it."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "speech.wav"
        subprocess.run(["flite", "-voice", voice, "-p" if phones else "-t", text, str(path)], check=True)
        with wave.open(str(path)) as file:
            pcm = np.frombuffer(file.readframes(file.getnframes()), np.int16)
    loud = np.flatnonzero(np.abs(pcm.astype(np.int32)) > 200)
    return pcm[loud[0]:loud[-1] + 1]


class Caller:
    """One session. Only ``plays`` makes replies audible; only if it ``obeys`` a yield brings an interruption."""

    def __init__(self, stage: Thinker, session: str, *, plays: bool = True, obeys: bool = True, next_turn: int = 0,
                 next_unit: int = 0, decided: int = 0, history: tuple[HistoryItem, ...] = (),
                 tools: tuple[Tool, ...] = ()) -> None:
        self.stage = stage
        self.session = session
        self.plays = plays
        self.obeys = obeys
        self.epoch = 0
        self.units = next_unit
        self.outputs: list[StageOutput] = []
        self.decisions: list[Decision] = []
        self.texts: dict[int, str] = {}
        self.whole: set[int] = set()
        self.cut: dict[int, str] = {}
        self._heard_words: dict[int, float] = {}
        self._seqs: dict[int, int] = {}
        self._noise = np.random.default_rng(5)
        stage.receive(Open(session, 0, next_turn, next_unit, tools=tools, history=history, decided=decided))

    @property
    def playing(self) -> int | None:
        """The reply that is audible now."""
        for turn, text in self.texts.items():
            if self.plays and turn not in self.cut and self._heard_words.get(turn, 0) < len(text.split()):
                return turn
        return None

    def heard(self, turn: int) -> str:
        """What was heard of a reply: whole words."""
        text, end = self.texts[turn], 0
        for word in text.split()[:int(self._heard_words.get(turn, 0))]:
            end = text.index(word, end) + len(word)
        return text[:end]

    def unit(self, pcm: Pcm | None = None) -> list[StageOutput]:
        """Give one unit and take what comes of it."""
        sound = np.zeros(SAMPLES, np.int16) if pcm is None else pcm
        loud = float(np.sqrt(np.mean(sound.astype(np.float64) ** 2))) > 150
        noisy = (sound + self._noise.normal(0, 8, SAMPLES)).clip(-32768, 32767).astype(np.int16)
        turn = self.playing
        if turn is not None:
            self._heard_words[turn] = self._heard_words.get(turn, 0) + WORDS_PER_UNIT
        self.stage.receive(AppendUnit(self.session, self.epoch, Unit(
            self.units, noisy, 0.9 if loud else 0.05, 0, SAMPLES if turn is not None else 0)))
        self.units += 1
        return self.run()

    def run(self) -> list[StageOutput]:
        """Let the stage work, and check what every output must keep."""
        new: list[StageOutput] = []
        while self.stage.ready:
            new += [output for output in self.stage.step() if session_of(output) == self.session]
        for output in new:
            match output:
                case Decision():
                    assert output.unit == (self.decisions[-1].unit + 1 if self.decisions else output.unit)
                    self.decisions.append(output)
                case ReplyText():
                    self._write(output)
                case CallerWords() | ToolCall():
                    pass
                case _:
                    raise AssertionError(output)
        self.outputs += new
        if self.obeys and any(isinstance(output, Decision) and output.yields for output in new):
            self.interrupt()
        return new

    def _write(self, piece: ReplyText) -> None:
        turn = piece.fence.turn
        assert piece.fence.epoch == self.epoch
        assert piece.fence.seq == self._seqs.get(turn, 0)
        assert turn not in self.whole
        assert piece.start == len(self.texts.get(turn, "")) or turn not in self.texts
        self._seqs[turn] = piece.fence.seq + 1
        self.texts[turn] = self.texts.get(turn, "") + piece.text
        if piece.last:
            self.whole.add(turn)

    def interrupt(self) -> None:
        """Cut the reply that is audible, as the engine does."""
        turn = self.playing
        self.epoch += 1
        if turn is not None:
            self.cut[turn] = self.heard(turn)
            self.stage.receive(Interrupt(self.session, self.epoch, turn, self.cut[turn]))
        else:
            self.stage.receive(Interrupt(self.session, self.epoch))

    def say(self, pcm: Pcm) -> list[StageOutput]:
        """Speak."""
        padded = np.concatenate([pcm, np.zeros(-len(pcm) % SAMPLES, np.int16)])
        return [output for i in range(0, len(padded), SAMPLES) for output in self.unit(padded[i:i + SAMPLES])]

    def silence(self, units: int) -> list[StageOutput]:
        """Say nothing."""
        return [output for _ in range(units) for output in self.unit()]

    def until_quiet(self, most: int = 2000) -> list[StageOutput]:
        """Say nothing until the reply was heard to its end."""
        new = self.silence(16)
        for _ in range(most):
            if self.playing is None and self.decisions[-1].choice is Choice.LISTEN:
                return new + self.silence(8)
            new += self.unit()
        raise AssertionError("the reply does not end")

    def type(self, text: str) -> None:
        """Type instead of speaking."""
        self.stage.receive(Inject(self.session, self.epoch, CallerText(text)))

    def ask(self, text: str) -> str:
        """Type, and hear the whole reply."""
        before = set(self.texts)
        self.type(text)
        self.until_quiet()
        return "".join(reply for turn, reply in self.texts.items() if turn not in before)

    def hang_up(self) -> None:
        """End the session."""
        self.stage.receive(Close(self.session))
        self.run()


def written(outputs: list[StageOutput]) -> str:
    """The reply text in ``outputs``."""
    return "".join(output.text for output in outputs if isinstance(output, ReplyText))


def understood(outputs: list[StageOutput]) -> list[str]:
    """The caller's final words in ``outputs``."""
    return [output.text for output in outputs if isinstance(output, CallerWords) and output.final]
