"""Dialogues for the thinker to learn from, without end: what callers do, as it is heard, and what is wanted then.

Skills reply in them as they do in a call, so that what follows makes sense: the rest of a story that was cut, a yes to
an offer, one number more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from random import Random

from duologue.engine.models.embedded.dialogue import intents
from duologue.engine.models.embedded.dialogue.policy import is_agreement
from duologue.engine.models.embedded.thinking.doubt import REFUSALS
from duologue.engine.models.embedded.thinking.format import Call
from training.thinker import hearing
from training.thinker.errors import Confusions
from training.thinker.floor import Floor
from training.thinker.hearing import Heard, whole
from training.thinker.moments import LISTEN, Moment, do, say
from training.thinker.phrasebook import Phrasebook, Said
from training.thinker.story import Story

GO_ON = "Go on, I am listening."
"""Said where a sentence was begun that no question fits."""
_TURNS = (0.48, 0.25, 0.13, 0.07, 0.04, 0.03)
"""Shares of dialogues of one turn, two, ..."""
_OTHERS = (2, 3, 4)
"""Sentences that might have been said instead: a history costs more to read than they do."""
_LEVELS, _LEVEL_SHARES = (0.0, 1.0, 3.0), (0.5, 0.35, 0.15)
"""How many times as frequent as they are errors may be, and the shares of sentences."""
_SLOTTED = 2.0
"""Times as often as others skills are asked that need slots: words are harder to copy than a name is to choose."""
_MISHEARD_NODS = 0.4
"""Share of nods over a reply that are heard as other words."""
_ALIKE = 0.5
"""Share of those that are heard as words that sound like them; the others as any."""
_SHORT_NOD = 2
"""Words up to which a misheard nod may begin as a sentence does."""
_BEYOND, _ASKED = 0.15, 0.49
"""Shares of sentences that are out of domain, and that ask a skill; the others are small talk."""
_SALAD = 0.12
"""Share of out-of-domain sentences that are words put together at random."""
_LONGEST = 3
"""Words of a sentence out of domain among which another word is put: the longest say most of what it is about."""
_CORRECTED = {"count": "stop", "count_down": "start", "spell": "word", "set_name": "name", "remind": "task",
              "arithmetic": "right", "percent": "whole", "convert": "target", "repeat": "text", "square": "number",
              "root": "number"}
"""The slot that a mere new value is for."""


class Dialogues:
    """Makes dialogues of ``book``'s sentences, heard with ``confusions`` at ``levels``, which have their shares."""

    def __init__(self, book: Phrasebook, confusions: Confusions, refused: str = "train",
                 levels: Mapping[float, float] | None = None, *, strange: float = 0.0) -> None:
        """``refused`` names the part of the sentences out of domain that is drawn from; ``strange`` is the share of
        them of whose words one or two are any other words: what nobody here knows about has words nobody here knows.
        """
        self._book = book
        self._confusions = confusions
        self._refused = book.phrasings.out_of_domain[refused]
        self._strange = strange
        self._levels = dict(zip(_LEVELS, _LEVEL_SHARES, strict=True)) if levels is None else levels
        phrasings = book.phrasings
        self._sounds = frozenset((*phrasings.backchannels, *phrasings.noises, *phrasings.hesitations))
        self._weights = [_SLOTTED if intent in book.slotted else 1.0 for intent in book.calls]
        self._actions: Mapping[Callable[[Story], None], float] = {
            self._asks: 1.0, self._begins: 0.09, self._splits: 0.07, self._murmurs: 0.09, self._corrects: 0.06,
            self._goes_on: 0.05}

    def endless(self, seed: int) -> Iterator[list[Moment]]:
        """One dialogue after another; the same of the same seed."""
        random = Random(seed)
        while True:
            yield self.one(random)

    def one(self, random: Random) -> list[Moment]:
        """One dialogue."""
        now = datetime(2026, 1, 1) + timedelta(minutes=random.randrange(2 * 365 * 24 * 60))
        story = Story(random, now)
        if random.random() < 0.7:
            story.greet()
        for _ in range(random.choices(range(1, len(_TURNS) + 1), _TURNS)[0]):
            if story.memory.reminders and random.random() < 0.3:
                story.reminded()
            for _ in range(random.choice(_OTHERS)):
                self._floor(story).answered(self._anything(story))
            if story.memory.offer and random.random() < 0.6:
                self._agrees(story)
            elif story.cut and random.random() < 0.4:
                self._says(story, self._heard(story, self._book.sentence("go_on", random)))
            else:
                random.choices(list(self._actions), list(self._actions.values()))[0](story)
        return story.moments

    # --- what callers do ------------------------------------------------------------------------------------

    def _asks(self, story: Story) -> None:
        """A sentence: to a skill, of small talk, or one that means nothing here."""
        self._says(story, self._anything(story))

    def _agrees(self, story: Story) -> None:
        """A yes or a no to an offer; words that else show no more than that somebody listens are a yes then."""
        random = story.random
        agreement = [word for word in self._book.phrasings.backchannels if is_agreement(word)]
        if agreement and random.random() < 0.5:
            said = Said(tuple(random.choice(agreement).split()), {}, "yes")
        else:
            said = self._book.sentence(random.choice(("yes", "yes", "no")), random)
        self._says(story, whole(said, ""))

    def _begins(self, story: Story) -> None:
        """A sentence that is not ended, so that the thinker asks; often the rest comes then."""
        random = story.random
        if random.random() < 0.5:
            entry = random.choice(self._book.phrasings.unfinished)
            words = self._book.draw(random.choice(entry.begun), random)
            if not self._book.matcher.intents(words):
                self._floor(story).unfinished(words, say(entry.asks))
            return
        cut = self._cut_sentence(story)
        if cut is not None:
            first, heard, rest = cut
            asks = sorted(self._book.questions.intents(first))
            self._floor(story).unfinished(first, say(asks[0] if asks else GO_ON))
            self._says(story, Heard(rest, heard.wanted, "joined", heard.patience_ms))

    def _splits(self, story: Story) -> None:
        """A sentence in two utterances: the first was over before anything was asked."""
        cut = self._cut_sentence(story)
        if cut is not None:
            first, heard, rest = cut
            self._floor(story).unfinished(first, LISTEN)
            self._says(story, Heard(rest, heard.wanted, "joined", heard.patience_ms))

    def _murmurs(self, story: Story) -> None:
        """A sound that is nothing to answer."""
        sounds = story.random.choice((self._book.phrasings.hesitations, self._book.phrasings.noises,
                                      self._book.phrasings.backchannels))
        words = tuple(story.random.choice(sounds).split())
        if not self._book.matcher.intents(words) and not (story.memory.offer and is_agreement(" ".join(words))):
            self._floor(story).murmur(words)

    def _goes_on(self, story: Story) -> None:
        """Two sentences in one breath: the second is answered, the first was said before the answer could be."""
        first, heard = self._anything(story), self._anything(story)
        words = (*first.words, *heard.words)
        if first.kind != "out_of_domain" and not self._book.matcher.intents(words):
            self._says(story, Heard(words, heard.wanted, "two", heard.patience_ms))

    def _corrects(self, story: Story) -> None:
        """Another value for a slot of the last call, or another sentence, after words that say so."""
        random = story.random
        called = story.called
        corrections = self._book.phrasings.corrections
        slot = _CORRECTED.get(called.name, "") if called is not None else ""
        if called is None or slot not in called.slots or random.random() < 0.4:
            heard = self._anything(story)
            before, _, after = random.choice(corrections["sentence"]).partition("<X>")
            wanted, kind, patience_ms = heard.wanted, "corrected", heard.patience_ms
            value = heard.words
        else:
            other = self._book.sentence(called.name, random)
            if slot not in other.slots:
                return
            before, _, after = random.choice(corrections["slot"]).partition("<X>")
            value = tuple(other.value(slot).split())
            wanted, kind = do(Call(called.name, {**called.slots, slot: " ".join(value)})), "corrected"
            patience_ms = hearing.patience(value, {slot: (0, len(value))} if not after.strip() else {})
        words = (*self._drawn(before, random), *value, *self._drawn(after, random))
        if not self._book.matcher.intents(words):
            self._says(story, Heard(words, wanted, kind, patience_ms))

    # --- sentences ------------------------------------------------------------------------------------------

    def _says(self, story: Story, heard: Heard) -> None:
        """The caller says this, in silence or over the last reply, or shows over it that they listen."""
        floor = self._floor(story)
        if story.speaking and story.random.random() < 0.11:
            floor.nod(self._nodded(story.random))
        if story.speaking and story.random.random() < 0.16:
            floor.barge(heard)
        floor.utterance(heard)

    def _nodded(self, random: Random) -> Sequence[str]:
        """A sound that shows no more than that somebody listens, as it is or misheard.

        What is heard then may begin a sentence, as "but she" does, heard of "I see"; only how often each is said tells
        whether it was one.
        """
        sound = random.choice(random.choice((self._book.phrasings.backchannels, self._book.phrasings.noises))).split()
        if random.random() > _MISHEARD_NODS:
            return sound
        if random.random() < _ALIKE:
            words = [self._book.words.like(word, random) for word in sound]
        else:
            words = self._book.words.some(random.randint(1, 3), random)
        matcher = self._book.matcher
        another = matcher.begins_plainly(words) if len(words) > _SHORT_NOD else matcher.intents(words)
        return sound if another else words

    def _floor(self, story: Story) -> Floor:
        return Floor(story, self._book.matcher, self._sounds)

    def _anything(self, story: Story) -> Heard:
        random = story.random
        luck = random.random()
        if luck < _BEYOND:
            return self._beyond(story)
        if luck < _BEYOND + _ASKED:
            intent = random.choices(self._book.calls, self._weights)[0]
        else:
            intent = random.choice(self._book.replies)
        return self._heard(story, self._book.sentence(intent, random))

    def _beyond(self, story: Story) -> Heard:
        """What nobody here knows about."""
        random = story.random
        while True:
            if random.random() < _SALAD:
                words = tuple(self._book.words.some(random.randint(3, 10), random))
            else:
                words = self._book.draw(random.choice(self._refused), random)
                # Without any nothing is drawn, so that the exam stays the same.
                if self._strange and random.random() < self._strange:
                    words = self._strangely(words, random)
            if not self._book.matcher.intents(words):
                break
        level = self._level(random)
        came = self._confusions.hear(words, random, level) if level else []
        if came and not self._book.matcher.intents([one.word for one in came]):
            words = tuple(one.word for one in came)
        refusal = REFUSALS[story.times("out of domain") % len(REFUSALS)]
        return Heard(words, say(refusal), "out_of_domain", 640)

    def _strangely(self, words: tuple[str, ...], random: Random) -> tuple[str, ...]:
        """``words`` with any other word in place of one or two of the longest."""
        longest = sorted(range(len(words)), key=lambda place: -len(words[place]))[:_LONGEST]
        places = random.sample(longest, min(len(longest), random.choice((1, 2))))
        return tuple(self._book.words.any(random) if place in places else word for place, word in enumerate(words))

    def _heard(self, story: Story, said: Said) -> Heard:
        random = story.random
        reply = self._book.phrasings.replies.get(said.intent)
        says = reply.says[story.times(said.intent) % len(reply.says)] if reply is not None else ""
        if random.random() < 0.1:
            said = self._hesitating(said, random)
        return hearing.hear(said, says, self._confusions, self._book, random, self._level(random))

    def _hesitating(self, said: Said, random: Random) -> Said:
        """``said`` with a filler between two words, not inside a slot."""
        places = [place for place in range(len(said.words))
                  if not any(start < place < end for start, end in said.slots.values())]
        place = random.choice(places)
        filler = random.choice(self._book.phrasings.hesitations).split()
        slots = {slot: (start + len(filler) * (start >= place), end + len(filler) * (start >= place))
                 for slot, (start, end) in said.slots.items()}
        words = (*said.words[:place], *filler, *said.words[place:])
        other = self._book.matcher.intents(words) - {said.intent}
        return said if other else Said(words, slots, said.intent)

    def _cut_sentence(self, story: Story) -> tuple[tuple[str, ...], Heard, tuple[str, ...]] | None:
        """A sentence in two parts, the first of which is no sentence yet."""
        random = story.random
        said = self._book.sentence(random.choice([intent for intent in self._book.calls
                                                  if intent in intents.INTENTS]), random)
        places = [place for place in range(2, len(said.words))
                  if not self._book.matcher.intents(said.words[:place])]
        starts = [start for start, _ in said.slots.values() if start in places]
        if not places:
            return None
        place = random.choice(starts if starts and random.random() < 0.6 else places)
        rest = said.words[place:]
        if self._book.matcher.intents(rest):
            return None
        return said.words[:place], whole(said, ""), rest

    def _drawn(self, template: str, random: Random) -> tuple[str, ...]:
        return self._book.draw(template, random) if template.strip() else ()

    def _level(self, random: Random) -> float:
        return random.choices(list(self._levels), list(self._levels.values()))[0]
