"""What a stage config may set of the embedded thinker."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from duologue.engine.models.embedded.thinking.model import DecoderOptions
from duologue.strict import Strict


class Options(Strict):
    """Of the embedded thinker."""

    wit: Literal["rules", "trained"] = "trained"
    """Who understands and decides: the dialogue policy's grammar, or the trained thinker."""
    hearing: Literal["recogniser", "neural"] = "recogniser"
    """Who hears for the trained thinker: a recogniser, whose words it reads, or a trained encoder, which hands it rows
    of its embeddings. The encoder is an experiment: it knows three of flite's voices."""
    decoder: DecoderOptions = DecoderOptions()
    """Of the trained thinker."""
    greeting: str = Field(default="Hello, this is Duologue. What can I do for you?", max_length=300)
    """Said when a call begins; empty for none."""
    seed: int = 0
    """Of dice, coins and the choice of phrases."""
    max_recognisers: int = Field(default=6, gt=0)
    """Callers who can be listened to at the same moment; each takes about 80 MB, 20 with a trained thinker."""
    warm_recognisers: int = Field(default=2, gt=0)
    """How many of them are loaded at the start; each later one holds the stage up for 0.3 s once."""
    frequent_words: int = Field(default=10_000, ge=1000)
    """Words of the language model that are kept."""

    @model_validator(mode="after")
    def _rows_have_a_reader(self) -> Self:
        if self.hearing == "neural" and self.wit != "trained":
            raise ValueError("hearing: neural gives rows that only a trained thinker reads: set wit to trained, or "
                             "leave hearing out")
        return self
