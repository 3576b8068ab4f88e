"""The bare forecaster: a correction of exactly zero."""

from __future__ import annotations

from dataclasses import dataclass

from ompb.core.arrays import Array, zeros
from ompb.core.features import FeatureMap, View
from ompb.core.members.contract import Fixed, Learner, MemberOptions, Untaught

NAME = "backbone"


@dataclass(frozen=True)
class Backbone(Fixed, tag=NAME):
    """Adds nothing: y_h = z_h."""

    @classmethod
    def learner(cls, features: FeatureMap, options: MemberOptions) -> Learner:
        """It needs no source."""
        del features, options
        return Untaught(cls)

    def correction(self, view: View) -> Array:
        """Zeros (N, n, H)."""
        return zeros(view.base, *view.base.shape)
