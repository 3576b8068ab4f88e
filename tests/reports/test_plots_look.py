"""What every picture has in common."""

import warnings
from io import BytesIO
from typing import Any

from matplotlib.figure import Figure

from ompb.plots.look import save


class FewDates(Figure):
    """A figure of few rows, for whose axis matplotlib finds no interval it likes."""

    def savefig(self, *_: Any, **__: Any) -> None:
        warnings.warn("AutoDateLocator was unable to pick an appropriate interval for this date range.", stacklevel=2)


def test_an_axis_of_few_dates_is_drawn_without_a_word() -> None:
    save(FewDates(), BytesIO())
