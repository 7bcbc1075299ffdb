"""Frozen results as pandas DataFrames; pandas is imported when a frame is asked for."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    import pandas


def flat_fields(value: msgspec.Struct, leave_out: Collection[str] = ()) -> dict[str, Any]:
    """Return the fields of a struct, those of structs and named tuples in it by dotted names (`kernel.tile_m`)."""
    fields: dict[str, Any] = {}
    for name in value.__struct_fields__:
        if name in leave_out:
            continue
        field = getattr(value, name)
        if isinstance(field, msgspec.Struct):
            fields |= {f"{name}.{inner}": found for inner, found in flat_fields(field).items()}
        elif hasattr(field, "_asdict"):
            fields |= {f"{name}.{inner}": found for inner, found in field._asdict().items()}
        else:
            fields[name] = field
    return fields


def row_frame(value: msgspec.Struct, leave_out: Collection[str] = ()) -> "pandas.DataFrame":
    """Return a frame of one row, a column for each of `flat_fields`; results join with `pandas.concat`."""
    import pandas

    return pandas.DataFrame([flat_fields(value, leave_out)])
