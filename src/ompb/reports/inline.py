"""A matplotlib figure as an ``svg`` element to be put into a page: the same text for the same figure."""

from __future__ import annotations

import re
from io import StringIO

from matplotlib import rc_context
from matplotlib.figure import Figure

from ompb.plots.look import save


def inline_svg(figure: Figure, prefix: str) -> str:
    """The figure as an ``svg`` element; ``prefix`` keeps its identifiers apart from those of other figures."""
    buffer = StringIO()
    metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    # Text stays text: smaller, and it can be searched and read aloud.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "ompb"}):
        save(figure, buffer, format="svg", metadata=metadata)
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    return re.sub(r'(\sid="|href="#|url\(#)', rf"\1{prefix}-", svg)
