"""An utterance while it goes on: what is heard of it at one time after another, and who has the floor then."""

from __future__ import annotations

from collections.abc import Sequence

from duologue.engine.models.embedded.dialogue.policy import is_agreement
from duologue.engine.models.embedded.thinking.format import PAUSES_MS, Answer, Heard
from training.thinker import hearing
from training.thinker.matching import Matcher
from training.thinker.moments import KEEP, LISTEN
from training.thinker.story import Story

_ASKED_MS = 1440
"""Silence after which the rest of a sentence is asked for."""
_BREATH_MS = 160
"""Silence that is no pause between two words any more."""
_PARTIAL, _EARLY = 0.5, 0.45
"""Shares of utterances of which a part is heard as well, and the whole too early."""
_PLAIN_MS = 400
"""As long a speaker may pause in a sentence that is not known."""


class Floor:
    """Adds what is heard to ``story``; ``matcher`` says what is a sentence, ``murmurs`` what only shows listening."""

    def __init__(self, story: Story, matcher: Matcher, murmurs: frozenset[str]) -> None:
        self._story = story
        self._random = story.random
        self._matcher = matcher
        self._murmurs = murmurs

    def utterance(self, heard: hearing.Heard) -> None:
        """One that is answered in the end."""
        words = heard.words
        self._parts(words)
        if self._random.random() < _EARLY:
            early = [ms for ms in PAUSES_MS if ms < heard.patience_ms]
            # The last moment before it is answered tells most.
            silent_ms = early[-1] if self._random.random() < 0.5 else self._random.choice(early)
            self._story.aside(Heard(words, silent_ms), LISTEN, "early")
        self._story.stand(Heard(words, self._ended_ms(heard)), heard.wanted, heard.kind)

    def answered(self, heard: hearing.Heard) -> None:
        """One that might have been said, and what would have been answered."""
        self._story.aside(Heard(heard.words, self._ended_ms(heard)), heard.wanted, heard.kind)

    def unfinished(self, words: Sequence[str], wanted: Answer) -> None:
        """One that ends before the sentence does; ``wanted`` is what the thinker does about it at last."""
        self._parts(words)
        asks = wanted != LISTEN
        waits = [ms for ms in PAUSES_MS if ms < (_ASKED_MS if asks else 960)]
        for silent_ms in self._random.sample(waits, 2):
            self._story.aside(Heard(tuple(words), silent_ms), LISTEN, "waits")
        self._story.stand(Heard(tuple(words), _ASKED_MS if asks else 960), wanted, "unfinished" if asks else "waits")

    def murmur(self, words: Sequence[str]) -> None:
        """A sound that is not answered."""
        self._story.aside(Heard(tuple(words), self._random.choice(PAUSES_MS)), LISTEN, "murmur")
        self._story.stand(Heard(tuple(words), self._random.choice(PAUSES_MS[4:])), LISTEN, "murmur")

    def nod(self, words: Sequence[str]) -> None:
        """A sound over the reply that leaves the floor where it is."""
        if self._story.memory.offer and is_agreement(" ".join(words)):
            return
        self._story.aside(Heard(tuple(words), self._random.choice(PAUSES_MS[:4]), over=True), KEEP, "keeps")
        self._story.stand(Heard(tuple(words), self._random.choice(PAUSES_MS[2:6]), over=True), KEEP, "keeps")

    def barge(self, heard: hearing.Heard) -> None:
        """What begins over the reply, and takes the floor."""
        words = heard.words
        text = " ".join(words)
        accepts = bool(self._story.memory.offer) and is_agreement(text)
        if (text in self._murmurs or is_agreement(text)) and not accepts:
            return
        if len(words) == 1 and not accepts and not self._matcher.intents(words):
            return
        for _ in range(self._random.choice((1, 2, 2))):
            self._over(words, self._random.randint(1, len(words)))
        if self._random.random() < 0.3:
            ended = self._random.choice(PAUSES_MS[2:4])
            self._story.aside(Heard(words, ended, over=True), LISTEN, "yields")
        self._story.interrupted()

    def _ended_ms(self, heard: hearing.Heard) -> int:
        """The silence at which ``heard`` is answered: as soon as it may be, or when the recogniser is late, later."""
        later = [ms for ms in PAUSES_MS if heard.patience_ms < ms <= max(heard.patience_ms, 960)]
        return self._random.choice(later) if later and self._random.random() < 0.2 else heard.patience_ms

    def _over(self, words: tuple[str, ...], count: int) -> None:
        part = words[:count]
        text = " ".join(part)
        long = self._random.random() < (0.7 if count > 2 else 0.15)
        stops = "stop" in self._matcher.intents(part)
        # What makes no sense may be a murmur that was misheard; a sentence goes on.
        means = count > 1 and text not in self._murmurs and self._matcher.begins_plainly(part)
        takes = long or stops or means
        silent_ms = self._random.choice((0, 0, 80))
        self._story.aside(Heard(part, silent_ms, over=True, long=long), LISTEN if takes else KEEP,
                          "yields" if takes else "keeps")

    def _parts(self, words: Sequence[str]) -> None:
        """Maybe a beginning of ``words``, in the middle of speech or of a pause that is none after a sentence."""
        if len(words) < 2 or self._random.random() > _PARTIAL:
            return
        part = tuple(words[:self._random.randint(1, len(words) - 1)])
        silent_ms = self._random.choice((0, 0, 0, 80))
        if self._random.random() < 0.4 and not self._matcher.intents(part):
            begun = self._matcher.begins(part)
            silent_ms = self._random.choice([ms for ms in PAUSES_MS
                                             if _BREATH_MS <= ms <= (960 if begun else _PLAIN_MS)])
        self._story.aside(Heard(part, silent_ms), LISTEN, "partial")
