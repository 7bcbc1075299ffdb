"""Colours of the charts: one for each group of reasons, the same in figures and tables, readable on light and dark."""

from simfa.report.attribution import GROUPS, REASONS

# Tol's "bright" and "muted" qualitative schemes: distinct for the common forms of colour blindness.
GROUP_COLOURS: dict[str, str] = dict(
    zip(
        GROUPS,
        ("#4477aa", "#ccbb44", "#228833", "#ee6677", "#aa3377", "#66ccee", "#999933", "#bbbbbb"),
        strict=True,
    )
)
# Slices of the tensor pipe and of the TMA engine, by the label they carry.
LABEL_COLOURS: dict[str, str] = {
    "S": "#228833",
    "O": "#77cc88",
    "K": "#ee6677",
    "V": "#f4a6ae",
    "Q": "#882255",
}
OTHER_COLOUR = "#777777"


def slice_colour(label: str) -> str:
    """Return the colour of a timeline slice: that of its reason's group, or of its accumulator or ring."""
    if label in REASONS:
        return GROUP_COLOURS[REASONS[label].group]
    return LABEL_COLOURS.get(label, OTHER_COLOUR)
