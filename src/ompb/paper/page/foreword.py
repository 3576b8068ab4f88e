"""The head of the page: whose method it is about, what is counted, and what colours say."""

from __future__ import annotations

from ompb.paper.grid import OMPB
from ompb.paper.page.sheet import MUCH, SLIGHT
from ompb.paper.page.words import REPOSITORY, inline

TITLE = f"{OMPB}: results"
PAPER = "Model-Agnostic Online Certificate-Driven Calibration for Time Series Forecasting Under Distribution Shift"
WHERE = "UAI 2026"
METHOD = "Online Martingale PAC-Bayes"

_ABOUT = f"""
`{OMPB}` wraps a trained forecaster, keeps it frozen and corrects its forecasts as outcomes become known. The method is
*{METHOD}* (OMPB), of the paper *{PAPER}* ({WHERE}); [this package]({REPOSITORY}) departs from it where a deployment
must. Here it stands beside that paper, other published methods and trivial references.
"""


def header(cells: int) -> str:
    """Above the contents."""
    return f"""<header><div><h1>{TITLE}</h1>
<p>{inline(" ".join(_ABOUT.split()))}</p>
<p class="soft">{cells} cells, each one run of one method. Errors are in standard deviations of the source; smaller is
better. Colour: only in columns whose heading has the word ratio, which are those of one error to another; what is
divided by what stands above each table. <span class="better">Blue</span> is below 1 by more than {SLIGHT:.0%},
<span class="worse">orange</span> above 1 by as much, <b>bold</b> by more than {MUCH:.0%}; a ratio with a mark has none.
Tinted lines are those of <code>{OMPB}</code>.</p></div></header>"""
