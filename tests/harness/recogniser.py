"""An independent ear: pocketsphinx in the test's own process says what was heard in a recording."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pocketsphinx import Decoder

from tests.harness.sound import RATE, Sound, resample, spans, to_pcm

EAR_RATE = 16_000
"""Sample rate, in Hz, of pocketsphinx's bundled acoustic model (en-us)."""

_FRAME = EAR_RATE // 100
_PAD = RATE // 10

_ONES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
         "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_VALUES = {word: value for value, word in enumerate(_ONES)} | {
    word: 20 + 10 * place for place, word in enumerate(_TENS)
}

_NUMBER = f"""
<digit> = {" | ".join(_ONES[1:10])};
<number> = {" | ".join(_ONES)} | ({" | ".join(_TENS)}) [<digit>] | [one] hundred;
"""
_SOUNDS_LIKE = {"to": "two", "too": "two", "for": "four", "ate": "eight", "won": "one"}
"""What the language model makes of a number said alone."""


@dataclass(frozen=True, slots=True)
class Heard:
    """A word and which samples (of the recording given) it was heard in, exact to about 10 ms."""

    word: str
    start: int
    end: int


def transcribe(sound: Sound, rate: int = RATE) -> list[Heard]:
    """What the free language model hears; words in lower case, in order."""
    return list(_hear(None, sound, rate))


def text(sound: Sound, rate: int = RATE) -> str:
    """The words of :func:`transcribe`, joined by spaces."""
    return " ".join(heard.word for heard in transcribe(sound, rate))


def fit(sound: Sound, rule: str, rate: int = RATE) -> list[str]:
    """The words of a grammar's sentence that fits best; ``rule`` is JSGF, its ``<number>`` is 0 to 100.

    A grammar takes any speech for one of its sentences, so ask :func:`text` too whether it is about that.
    """
    return [heard.word for heard in _hear(rule, sound, rate)]


def counted(sound: Sound, rate: int = RATE) -> list[tuple[int, Heard]]:
    """The numbers heard in a recording of somebody who counts, 0 to 100, with where each was heard."""
    numbers: list[tuple[int, Heard]] = []
    for heard in transcribe(sound, rate):
        word = _SOUNDS_LIKE.get(heard.word, heard.word)
        named = number_words([word])
        before = numbers[-1] if numbers else None
        # "twenty two" said in one breath is one number, "twenty", "two" with a pause are two.
        near = before is not None and heard.start - before[1].end <= rate // 20
        if before is not None and near and len(joined := number_words([*before[1].word.split(), word])) == 1:
            numbers[-1] = (joined[0], Heard(f"{before[1].word} {word}", before[1].start, heard.end))
        elif named:
            numbers.append((named[0], Heard(word, heard.start, heard.end)))
    return numbers


def counted_up(sound: Sound, rate: int = RATE) -> list[int]:
    """The numbers of a count, as far as they go up: half of a cut word, or an "okay" after it, may sound like one."""
    numbers: list[int] = []
    for number, _ in counted(sound, rate):
        if numbers and number <= numbers[-1]:
            break
        numbers.append(number)
    return numbers


def number_words(words: Iterable[str]) -> list[int]:
    """Numbers 0 to 100 named in a text's words; everything else is passed over."""
    found: list[int] = []
    joinable = False
    for word in words:
        value = 100 if word == "hundred" else int(word) if word.isdecimal() else _VALUES.get(word)
        if value is None:
            joinable = joinable and word == "and"
            continue
        if joinable and found[-1] >= 20 and found[-1] % 10 == 0 and 0 < value < 10:
            found[-1] += value
        elif joinable and value == 100 and found[-1] == 1:
            found[-1] = 100
        else:
            found.append(value)
        joinable = True
    return found


@lru_cache(maxsize=1)
def _decoder() -> Any:
    return Decoder(samprate=EAR_RATE, loglevel="FATAL")


@lru_cache(maxsize=32)
def _grammar(rule: str) -> str:
    name = f"rule{_grammar.cache_info().misses}"
    _decoder().add_jsgf_string(name, f"#JSGF V1.0;\ngrammar {name};\n{_NUMBER}\npublic <{name}> = {rule};\n")
    return name


def _hear(rule: str | None, sound: Sound, rate: int) -> Iterable[Heard]:
    decoder = _decoder()
    decoder.activate_search(_grammar(rule) if rule else "_default")
    for span in spans(sound, rate, gap_ms=600):
        begin = max(span.start - _PAD * rate // RATE, 0)
        piece = resample(sound[begin : span.end + _PAD * rate // RATE], rate, EAR_RATE)
        decoder.start_utt()
        decoder.process_raw(to_pcm(piece).tobytes(), full_utt=True)
        decoder.end_utt()
        for part in decoder.seg() or ():
            if part.word[0] in "<[+":
                continue  # sentence ends, silence, noises
            start, end = (begin + frame * _FRAME * rate // EAR_RATE
                          for frame in (part.start_frame, part.end_frame + 1))
            yield Heard(part.word.split("(")[0], start, end)
