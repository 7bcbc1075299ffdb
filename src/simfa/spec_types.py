"""Types of preset values, and the base of the groups they come in."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

Status = Literal["paper", "datasheet", "microbenchmark", "calibrated", "assumed"]
Count = Annotated[int, Meta(ge=1)]
Whole = Annotated[int, Meta(ge=0)]
Cycles = Annotated[int, Meta(ge=0)]
Nanoseconds = Annotated[float, Meta(ge=0)]
Rate = Annotated[float, Meta(gt=0)]
Fraction = Annotated[float, Meta(ge=0, le=1)]


class Group(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A named group of values: frozen, and strict about names."""
