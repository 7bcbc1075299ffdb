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
# Shades of their group's colour for reasons that stand beside each other in one stack.
REASON_SHADES: dict[str, str] = {
    "wgmma_issue": "#7fa3cc",
    "tensor_busy": "#58ab68",
    "wgmma_wait": "#85c490",
    "drain": "#b9dfb5",
    "epilogue": "#e2d687",
    "bubble": "#efe8b8",
    "cuda_contention": "#a5962f",
    "wait_v": "#f4a6ae",
    "wait_q": "#b9485c",
    "wait_other": "#f8ccd1",
    "acquire_q": "#c86d9b",
    "acquire_o": "#dca3c0",
    "acquire_other": "#edcfdf",
    "tile_edge": "#999999",
    "launch": "#d8d8d8",
    "tail": "#e8e8e8",
}
# Slices of the tensor pipe, the TMA engine, stages and barriers, by the label they carry.
LABEL_COLOURS: dict[str, str] = {
    "S": "#228833",
    "O": "#77cc88",
    "K": "#ee6677",
    "V": "#f4a6ae",
    "Q": "#882255",
    "loading": "#ffcf9e",
    "full": "#c9ced6",
    "waiting": "#66ccee",
    "arrived": "#cdeaf6",
}
OTHER_COLOUR = "#777777"


def slice_colour(label: str) -> str:
    """Return the colour of a timeline slice: that of its reason's group, or of its accumulator or ring."""
    if label in REASONS:
        return GROUP_COLOURS[REASONS[label].group]
    return LABEL_COLOURS.get(label, OTHER_COLOUR)


def reason_colour(label: str) -> str:
    """Return the colour of a label where reasons of one group must be told apart."""
    return REASON_SHADES.get(label) or slice_colour(label)


def is_dark(colour: str) -> bool:
    """Return whether white text reads better on a colour than black text does (luma of ITU-R BT.601)."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return 0.299 * red + 0.587 * green + 0.114 * blue < 120
