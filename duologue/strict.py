"""The base of every config object."""

from pydantic import BaseModel, ConfigDict


class Strict(BaseModel):
    """Immutable, and an unknown key is an error: no option that nothing reads."""

    model_config = ConfigDict(frozen=True, extra="forbid")
