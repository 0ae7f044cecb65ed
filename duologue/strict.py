"""The base of every config object."""

from pydantic import BaseModel, ConfigDict, ValidationError


class Strict(BaseModel):
    """Immutable, and an unknown key is an error: no option that nothing reads."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def faults(error: ValidationError) -> str:
    """What is wrong, in a line: each key and what was expected of it."""
    return "; ".join(": ".join(filter(None, (".".join(map(str, fault["loc"])),
                                             fault["msg"].removeprefix("Value error, "))))
                     for fault in error.errors())
