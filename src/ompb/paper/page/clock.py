"""What a method has seen before a forecast, in words and as a picture of rows."""

from __future__ import annotations

HORIZON, ROWS, NOW = 4, 12, 6  # of the picture: rows ahead, rows drawn, and the newest row that has come
BOX, GAP, TOP = 22, 4, 18

PROTOCOL = """
A forecaster is trained on a source and then frozen. Rows of a stream arrive one by one; at each row t the method
issues a forecast of the H rows to come, and is scored on them.

**Honest** is what a deployment has: before the forecast at row t, the method knows the rows up to t. Of its earlier
forecasts it knows just those leads whose rows have come.

**One-step** is the protocol of the paper's main tables: the *complete* outcome of the forecast at row t - 1 is shown
before the forecast at row t. That outcome holds the rows t to t + H - 1, so H - 1 of the H rows that the next
forecast is scored on have been seen. It is a leak. The method `copy`, which adds the last residual it was shown,
tells how much it is worth.

Method `ompb` is this package, and runs honestly only. `ompb-paper` is the paper's method as published, and runs under
either protocol. `original` is the bare forecaster; `profile`, `last`, `bias` and `copy` are what anyone could do in
its place.
"""


def _boxes(first: int, last: int, line: int, look: str) -> str:
    y = _top(line)
    return "".join(
        f'<rect x="{row * (BOX + GAP)}" y="{y}" width="{BOX}" height="{BOX}" rx="3" {look}/>'
        for row in range(first, last)
    )


def _top(line: int) -> int:
    return TOP + line * (BOX + TOP + GAP)


def _line(line: int, name: str, known: int) -> str:
    """Rows that are known, filled; rows to be forecast, framed; where both, the leak."""
    words = f'<text x="0" y="{_top(line) - 5}" fill="var(--ink)">{name}</text>'
    seen = _boxes(0, NOW, line, 'fill="var(--soft)" fill-opacity=".45"')
    leak = _boxes(NOW, known, line, 'fill="var(--worse)"')
    ahead = _boxes(NOW, NOW + HORIZON, line, 'fill="none" stroke="var(--mark)" stroke-width="2"')
    later = _boxes(NOW + HORIZON, ROWS, line, 'fill="none" stroke="var(--line)"')
    return words + seen + leak + later + ahead


WIDTH, HEIGHT = ROWS * (BOX + GAP), 2 * (BOX + TOP + GAP)
CLOCK = f"""<figure class="clock" id="clock">
<svg role="img" aria-label="What each protocol has shown" viewBox="-2 -2 {WIDTH + 4} {HEIGHT + 4}" font-size="12">
{_line(0, "honest", NOW)}
{_line(1, "one-step", NOW + HORIZON - 1)}
</svg>
<figcaption>Rows of a stream, H = {HORIZON}. Framed: the rows that the forecast at row t is scored on. Grey: rows up
to t, known to everyone. Filled inside the frame: rows to come that one-step has shown already.</figcaption>
</figure>"""
