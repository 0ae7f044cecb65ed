"""How a session's mind is made, and what all of one kind share: recognisers, and a decoder where it is trained."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Protocol

from duologue.engine.messages import Open
from duologue.engine.models.embedded.automaton import compile_grammar
from duologue.engine.models.embedded.dialogue.dialogue import Dialogue
from duologue.engine.models.embedded.dialogue.intents import grammar
from duologue.engine.models.embedded.ear import Ear
from duologue.engine.models.embedded.endpoint import Patience
from duologue.engine.models.embedded.hearing.listener import Sounding, Unmeasured
from duologue.engine.models.embedded.hearing.opening import Listeners
from duologue.engine.models.embedded.lexicon import FREE_WORDS, FittedLexicon, Lexicon
from duologue.engine.models.embedded.mind import Mind
from duologue.engine.models.embedded.options import Options
from duologue.engine.models.embedded.readers import Agreed, Plain, Reader
from duologue.engine.models.embedded.recogniser import (
    AnyRecogniser,
    ChannelMeter,
    Meter,
    Pool,
    Recogniser,
    Transcriber,
)
from duologue.engine.models.embedded.thinking.model import open_model
from duologue.engine.models.embedded.thinking.record import Record
from duologue.engine.models.embedded.thinking.turns import Considered
from duologue.engine.models.embedded.thinking.wit import Thought
from duologue.engine.models.embedded.turns import Ruled


class Minds(Protocol):
    """The minds of one stage."""

    pool: Pool

    def make(self, opening: Open) -> Mind:
        """Open a session."""

    def forget(self, session: str) -> None:
        """Give back what is shared and the session had; idempotent."""

    def close(self) -> None:
        """Free what is shared; idempotent."""


class RuledMinds:
    """The dialogue policy: two decoders, of which one knows its grammar."""

    def __init__(self, options: Options, unit_ms: int) -> None:
        self._options = options
        self._unit_ms = unit_ms
        self._lexicon = Lexicon(grammar().words, options.frequent_words)
        self._reader = Agreed(self._lexicon)
        # A name in it takes a moment to be read: not in a call.
        self._lexicon.phones_of_text(options.greeting)
        automaton = compile_grammar(grammar(), FREE_WORDS)
        meter = ChannelMeter(self._lexicon.grammar_dictionary, FREE_WORDS[0])
        self.pool = Pool(lambda: Recogniser(self._lexicon, automaton), meter, options.warm_recognisers,
                         options.max_recognisers)

    def make(self, opening: Open) -> Mind:
        """See ``Minds``."""
        dialogue = Dialogue(_seed(self._options, opening), self._options.greeting, opening.tools)
        turns = Ruled(dialogue, Patience())
        ear = Ear(self.pool, self._reader, turns, self._unit_ms)
        return Mind(opening, dialogue, ear, turns, self._lexicon, self._unit_ms, _local_time)

    def forget(self, session: str) -> None:
        """See ``Minds``: nothing is shared but recognisers, which an ear gives back."""

    def close(self) -> None:
        """See ``Minds``: there is only memory."""


class TrainedMinds:
    """The trained thinker: one decoder of the sessions' sequences, and who hears for it.

    Raises ``ConfigError`` when the weights cannot be opened.
    """

    def __init__(self, options: Options, unit_ms: int) -> None:
        self._options = options
        self._unit_ms = unit_ms
        self._lexicon = FittedLexicon()
        # A name in it takes a moment to be read: not in a call.
        self._lexicon.phones_of_text(options.greeting)
        self._model = open_model(options.decoder)
        self._records: dict[str, Record] = {}
        load: Callable[[], AnyRecogniser]
        self._reader: Reader
        meter: Meter
        if options.hearing == "neural":
            load = Listeners(self._model.format.vocabulary, options.decoder.checkpoint)
            self._reader, meter = Sounding(), Unmeasured()
        else:
            # Any word of its dictionary will do.
            load, meter = partial(Transcriber, self._lexicon), ChannelMeter(self._lexicon.dictionary, "yes")
            self._reader = Plain()
        self.pool = Pool(load, meter, options.warm_recognisers, options.max_recognisers)

    def make(self, opening: Open) -> Mind:
        """See ``Minds``."""
        record = self._records[opening.session] = Record(self._model, opening.session)
        dialogue = Dialogue(_seed(self._options, opening), self._options.greeting, opening.tools, Thought(record))
        turns = Considered(record)
        ear = Ear(self.pool, self._reader, turns, self._unit_ms)
        return Mind(opening, dialogue, ear, turns, self._lexicon, self._unit_ms, _local_time)

    def forget(self, session: str) -> None:
        """See ``Minds``."""
        record = self._records.pop(session, None)
        if record is not None:
            record.close()

    def close(self) -> None:
        """See ``Minds``."""
        self._model.close()


def _seed(options: Options, opening: Open) -> str:
    return f"{options.seed}/{opening.session}"


def _local_time() -> datetime:
    return datetime.now().astimezone()
