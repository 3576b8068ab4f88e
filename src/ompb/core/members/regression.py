r"""The window regression: what the profile p leaves over, from the G features that know the window alone.

.. math:: \hat y_h = p_h + \phi_G^T u_h,\qquad u_h = G_{GG}^{-1} \, \overline{\phi_G\, (y_h - p_h)}

It never moves. As it is relative to the level it follows a level shift without any outcome.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from ompb.core.arrays import Array, contiguous, namespace, product
from ompb.core.features import FeatureMap, View
from ompb.core.members.contract import Fixed, Learner, MemberOptions
from ompb.core.members.sums import Sums
from ompb.floor.shapes import Shape


@dataclass(frozen=True)
class WindowRegression(Fixed, tag="regression"):
    """Forecasts the profile plus a linear function of the window."""

    weights: Annotated[Array, Shape("N G H")]  # u

    @classmethod
    def learner(cls, features: FeatureMap, options: MemberOptions) -> Learner:
        """Least squares over the learning windows."""
        del options
        return _RegressionLearner(features.of_window)

    def correction(self, view: View) -> Array:
        """P + phi_G u - z, (N, n, H)."""
        of_window = view.features[..., : self.weights.shape[1]]
        return view.profile + product(of_window, self.weights) - view.base


@dataclass
class _RegressionLearner(Learner):
    of_window: int  # G
    sums: Sums = field(default_factory=Sums)

    def add(self, view: View, outcomes: Array) -> None:
        self.sums.add(view.features[..., : self.of_window], outcomes - view.profile)

    def finish(self) -> WindowRegression:
        gram, cross = self.sums.means()
        return WindowRegression(contiguous(namespace(gram).linalg.solve(gram, cross)))
