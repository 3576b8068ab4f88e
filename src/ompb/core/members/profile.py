"""The seasonal profile of the window, where a whole season fits into it."""

from __future__ import annotations

from dataclasses import dataclass

from ompb.core.arrays import Array
from ompb.core.features import FeatureMap, View
from ompb.core.members.contract import Fixed, Learner, MemberOptions, Untaught


@dataclass(frozen=True)
class Profile(Fixed, tag="profile"):
    """Forecasts the profile p of the window: y_h = p_h."""

    @classmethod
    def learner(cls, features: FeatureMap, options: MemberOptions) -> Learner | None:
        """It needs no source, but a season."""
        del options
        return Untaught(cls) if features.has_profile else None

    def correction(self, view: View) -> Array:
        """P - z, (N, n, H)."""
        return view.profile - view.base
