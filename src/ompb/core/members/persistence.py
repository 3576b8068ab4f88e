"""The last value, where there is no season to repeat."""

from __future__ import annotations

from dataclasses import dataclass

from ompb.core.arrays import Array
from ompb.core.features import FeatureMap, View
from ompb.core.members.contract import Fixed, Learner, MemberOptions, Untaught


@dataclass(frozen=True)
class Persistence(Fixed, tag="persistence"):
    """Repeats the newest value."""

    @classmethod
    def learner(cls, features: FeatureMap, options: MemberOptions) -> Learner | None:
        """It needs no source; the profile takes its place where a season fits into the window."""
        del options
        return None if features.has_profile else Untaught(cls)

    def correction(self, view: View) -> Array:
        """The last value less z: (N, n, H)."""
        return view.rows[..., -1:] - view.base
