"""Turn-taking that is trained: at every silence, and at every new word over a reply, the thinker decides."""

from __future__ import annotations

from duologue.engine.models.embedded.dialogue.intents import grammar
from duologue.engine.models.embedded.overlap import Verdict
from duologue.engine.models.embedded.thinking.format import LONG_MS, PAUSES_MS, Heard
from duologue.engine.models.embedded.thinking.record import Record
from duologue.engine.models.embedded.utterance import Utterance

_NOTHING_MS = 480
"""Silence that ends an utterance without a word, or one that left the floor where it was."""
_SURE_WORDS = 3
"""Words over a reply that need no second look; a recogniser's first ones still change."""
_HEARD_OUT_MS = 160
"""Silence behind fewer words over a reply that no grammar knows, before they may take the floor: while it is said, a
nod that is misheard ("i see" as "by she") may be a sentence's beginning, and behind it no longer is."""


class Considered:
    """Over one session's ``record``; see ``TurnTaking``."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def finished(self, utterance: Utterance) -> bool:
        """See ``TurnTaking``."""
        words = utterance.understanding.words
        if not words or (utterance.over_reply and not utterance.granted):
            return utterance.silent_ms >= _NOTHING_MS
        if utterance.silent_ms > PAUSES_MS[-1]:
            return True
        if not utterance.silent_ms:
            return False
        answer = self._record.ask(Heard(words, utterance.silent_ms, sounds=utterance.understanding.sentence.sounds))
        return answer.speaks and not answer.keeps

    def judge(self, utterance: Utterance, *, adapted: bool) -> Verdict:
        """See ``TurnTaking``."""
        words = utterance.understanding.words
        kept = Verdict.KEEPS if utterance.ended else Verdict.UNDECIDED
        if not words:
            return kept
        parse = grammar().read(words).parse
        if parse is not None and parse.intent == "stop":
            # A lone "stop" is short, and to miss it is worse than a needless silence.
            return Verdict.TAKES
        long_ms = LONG_MS if adapted or utterance.ended else 2 * LONG_MS
        heard = Heard(words, utterance.silent_ms, over=True, long=utterance.spoken_ms >= long_ms,
                      sounds=utterance.understanding.sentence.sounds)
        if self._record.ask(heard).keeps:
            if utterance.ended:
                self._record.kept(heard)
            return kept
        settled = utterance.settled and (parse is not None or utterance.silent_ms >= _HEARD_OUT_MS)
        sure = utterance.ended or settled or len(words) >= _SURE_WORDS
        return Verdict.TAKES if sure else Verdict.UNDECIDED
