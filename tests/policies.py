"""Any policy there can be for a context."""

from __future__ import annotations

from hypothesis import strategies as st

from memory.budget import SECTIONS, ContextPolicy, Share


@st.composite
def policies(draw: st.DrawFn) -> ContextPolicy:
    """Floors that add up to at most 1, ceilings above them, any order and any slack."""
    cuts = sorted(draw(st.lists(st.floats(0.0, 1.0), min_size=5, max_size=5)))
    floors = [high - low for low, high in zip([0.0, *cuts], cuts, strict=False)]
    shares = {
        section: Share(floor=floor, ceiling=draw(st.floats(floor, 1.0)))
        for section, floor in zip(SECTIONS, floors, strict=True)
    }
    return ContextPolicy.model_validate(
        {
            **shares,
            "order": tuple(draw(st.permutations(SECTIONS))),
            "slack": draw(st.floats(0.0, 0.45)),
            "says_nothing_known": draw(st.booleans()),
        }
    )
