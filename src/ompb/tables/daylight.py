"""Hours that local clocks skip in spring, in tables that do not say what clock they keep."""

from __future__ import annotations

import numpy as np

from ompb.tables.clock import skipped
from ompb.tables.table import Table

HOUR = np.timedelta64(1, "h")
# Zones whose clocks go forward on different days, or at different hours.
ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "Europe/London",
    "Europe/Athens",
    "Australia/Sydney",
    "Pacific/Auckland",
    "America/Santiago",
)


def skipped_hours(table: Table, full: Table) -> tuple[str, ...]:
    """A sentence on a gap of one hour that clocks somewhere skip, if there is one; ``full`` is the table without gaps.

    Only of times that come at least once an hour and have neither zone nor offset.
    """
    grid = full.grid
    if full.clock.known or grid is None or grid.unit != "us" or np.timedelta64(grid.step, "us") > HOUR:
        return ()
    absent = full.times[~np.isin(full.times, table.times)]
    alone = absent[~np.isin(absent - HOUR, absent) & ~np.isin(absent + HOUR, absent)]  # no part of a longer gap
    for zone in ZONES:
        found = alone[skipped(alone, zone)]
        if len(found):
            return (
                f"The hour from {full.clock.shown(found[0])} is left out, which clocks skip in spring in {zone}, for "
                "example: if the times are local, name their zone with --timezone, and it is no gap.",
            )
    return ()
