"""Voice activity: silero decides, webrtcvad hints.

silero (v6, the 16 kHz file of the ``silero-vad`` wheel) hears speech reliably in noise, some 40 ms after it
has begun; webrtcvad is often sooner but takes noise for speech, so what it says is only good for what can be
taken back. Positions are samples of the stream; events do not depend on how it was cut into pushes.
"""

from __future__ import annotations

import importlib.util
from functools import lru_cache
from pathlib import Path

import numpy as np
import onnxruntime
import webrtcvad

from duologue.agent.config import VadConfig
from duologue.agent.media.activity import Hint, Offset, Onset, Probability, VoiceEvent
from duologue.engine import INPUT_RATE, Pcm

WINDOW = 512
"""Samples of one silero window (32 ms), fixed by the model."""

_CONTEXT = 64  # samples before a window that the model sees too (silero_vad/utils_vad.py)
_STATE = (1, 1, 128)  # shape of each of the model's two LSTM states
_MODEL = "silero_vad_16k_sequence.onnx"  # the same weights as silero_vad.onnx, for 16 kHz alone: 15 % less CPU
_FRAME = 320  # samples of one webrtcvad frame (20 ms)
_HINT_MODE = 3  # webrtcvad's strictest
_HINT_RISE = 10 ** (10 / 10)  # power over the noise floor, 10 dB, without which a frame is not voiced
_FLOOR_GROWTH = 10 ** (0.1 / 10)  # of the floor, per frame, 5 dB a second: it falls at once and rises slowly
_FLOOR_MIN = 10.0  # power of the quietest floor, -80 dB of full scale
_HINT_FRAMES = 2  # voiced frames in a row that make a hint
_REST_FRAMES = 5  # unvoiced frames in a row after which there may be another hint


@lru_cache(maxsize=1)
def _model() -> onnxruntime.InferenceSession:
    """Load silero once for the process; raises ``RuntimeError`` where its wheel is missing."""
    spec = importlib.util.find_spec("silero_vad")  # found, not imported: importing it needs torch
    path = Path(spec.origin).parent / "data" / _MODEL if spec is not None and spec.origin else None
    if path is None or not path.is_file():
        raise RuntimeError(f"{_MODEL} was not found: install the package silero-vad (pip install --no-deps "
                           "silero-vad==6.2.3)")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


class VoiceActivity:
    """Voice activity of one stream of 16 kHz samples; holds less than one window of it."""

    def __init__(self, config: VadConfig) -> None:
        self._config = config
        self._session = _model()
        self._offset_samples = config.offset_ms * INPUT_RATE // 1000
        self.reset()

    def reset(self) -> None:
        """Forget the stream: the next sample is sample 0."""
        self._judged = 0  # samples in whole windows so far
        self._input = np.zeros((1, _CONTEXT + WINDOW), np.float32)
        self._filled = 0  # samples of the present window
        self._h = np.zeros(_STATE, np.float32)
        self._c = np.zeros(_STATE, np.float32)
        self._in_speech = False
        self._speech_end = 0
        self._webrtc = webrtcvad.Vad(_HINT_MODE)
        self._framed = 0  # samples in whole frames so far
        self._frame = np.zeros(0, np.int16)
        self._floor = np.inf
        self._voiced = self._unvoiced = 0
        self._may_hint = True

    def push(self, pcm: Pcm) -> list[VoiceEvent]:
        """Take the next samples, int16, shape (n,); returns what they showed, in the stream's order."""
        events: list[VoiceEvent] = []
        windows, frames = self._probabilities(pcm), self._frames(pcm)
        for upto, shown in sorted([*windows, *frames], key=lambda pair: pair[0]):
            if isinstance(shown, bool):
                self._hear_frame(upto, shown, events)
            else:
                self._hear_window(upto, shown, events)
        return events

    def _probabilities(self, pcm: Pcm) -> list[tuple[int, float]]:
        """Judge the windows that ``pcm`` completes: where each ends, and its speech probability."""
        judged: list[tuple[int, float]] = []
        taken = 0
        while taken < pcm.size:
            count = min(pcm.size - taken, WINDOW - self._filled)
            start = _CONTEXT + self._filled
            np.divide(pcm[taken:taken + count], 32768, out=self._input[0, start:start + count])
            self._filled += count
            taken += count
            if self._filled == WINDOW:
                found, self._h, self._c = self._session.run(
                    None, {"input": self._input, "h": self._h, "c": self._c})
                self._input[0, :_CONTEXT] = self._input[0, -_CONTEXT:]
                self._filled = 0
                self._judged += WINDOW
                judged.append((self._judged, float(found[0])))
        return judged

    def _frames(self, pcm: Pcm) -> list[tuple[int, bool]]:
        """Judge the frames that ``pcm`` completes: where each ends, and whether it is voiced."""
        self._frame = np.concatenate((self._frame, pcm))
        judged: list[tuple[int, bool]] = []
        while self._frame.size >= _FRAME:
            frame, self._frame = self._frame[:_FRAME], self._frame[_FRAME:]
            self._framed += _FRAME
            sound = frame.astype(np.float32)
            power = float(sound @ sound) / _FRAME
            self._floor = max(min(power, self._floor * _FLOOR_GROWTH), _FLOOR_MIN)
            voiced = self._webrtc.is_speech(frame.tobytes(), INPUT_RATE)
            judged.append((self._framed, bool(voiced) and power > self._floor * _HINT_RISE))
        return judged

    def _hear_window(self, upto: int, probability: float, events: list[VoiceEvent]) -> None:
        events.append(Probability(probability, upto))
        if self._in_speech:
            if probability >= self._config.offset_threshold:
                self._speech_end = upto
            elif upto - self._speech_end >= self._offset_samples:
                self._in_speech = False
                events.append(Offset(self._speech_end))
        elif probability >= self._config.onset_threshold:
            self._in_speech, self._speech_end = True, upto
            events.append(Onset(upto - WINDOW))

    def _hear_frame(self, upto: int, voiced: bool, events: list[VoiceEvent]) -> None:
        if not voiced:
            self._voiced, self._unvoiced = 0, self._unvoiced + 1
            self._may_hint = self._may_hint or self._unvoiced >= _REST_FRAMES
            return
        self._voiced, self._unvoiced = self._voiced + 1, 0
        if self._voiced == _HINT_FRAMES and self._may_hint:
            self._may_hint = False
            if not self._in_speech:
                events.append(Hint(upto - _HINT_FRAMES * _FRAME))
