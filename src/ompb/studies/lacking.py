"""Recorded forecasts that are not whole: which leads or channels are lacking."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ompb.errors import ForecasterError
from ompb.floor.names import in_words, listed
from ompb.rows.windows import Origins
from ompb.tables import Table
from ompb.types import Floats


def require_whole(recorded: Floats, asked: Origins, table: Table, name: str) -> None:
    """Raise if a forecast (T, H, C) of the origins that are asked for has some leads and channels, and not all.

    ``name`` is the file they were read from.
    """
    missing = np.isnan(recorded[asked])
    made = ~missing.all(axis=(1, 2))
    never = np.asarray(missing.all(axis=0))  # (H, C)
    silent = np.flatnonzero(never.all(axis=0))
    if silent.size:
        channel = table.channels[silent[0]]
        raise ForecasterError(
            f"{name!r} has no forecasts of {in_words(channel)}; add them, or leave it out with --exclude {channel!r}."
        )
    if never.any():
        raise ForecasterError(f"{name!r} has no forecasts{_leads_lacking(never, table.channels)}")
    partly = np.flatnonzero(made & missing.any(axis=(1, 2)))
    if partly.size:
        lead, channel = np.argwhere(missing[partly[0]])[0]
        raise ForecasterError(
            f"{name!r} has no forecast of {in_words(table.channels[channel])} at lead {lead + 1} from the cutoff "
            f"{table.shown(asked[partly[0]])} ({len(partly)} of its cutoffs lack some); add it, or drop all lines of "
            "that cutoff."
        )


def _leads_lacking(never: NDArray[np.bool_], channels: tuple[str, ...]) -> str:
    """Which leads there are none of, in all channels or in the first that lacks some, and what to do."""
    all_alike = bool((never == never[:, :1]).all())
    channel = int(np.flatnonzero(never.any(axis=0))[0])
    leads = np.flatnonzero(never[:, channel]) + 1
    several = len(leads) > 1
    first = int(np.flatnonzero(never.any(axis=1))[0])
    lower = f"lower the horizon to {first}, or " if first else ""
    return (
        f"{'' if all_alike else f' of {in_words(channels[channel])}'} at lead{'s' * several} "
        f"{listed([str(lead) for lead in leads])} of the {len(never)} of the horizon; {lower}add "
        f"{'those leads' if several else 'that lead'}."
    )
