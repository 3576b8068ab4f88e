"""What turns squared errors and gaps into proxies in [0, 1]: read off learning windows before a stream starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ompb.core.arrays import Array, at_least, namespace, quantile
from ompb.core.certificate.disagreement import gaps
from ompb.core.certificate.windows import CertificateWindows, Reader
from ompb.floor.shapes import Shape

# Quantiles of the root mean squared error, and of the gap.
TAU_Y_QUANTILE, TAU_D_QUANTILE = 0.9, 0.5
# tau_y lies well beyond that quantile: at the quantile itself a third of a stream's losses would be cut off at 1.
TAU_Y_FACTOR = 2.0
# A source without error or disagreement still gets scales to divide by.
LEAST_SCALE = 1e-9


@dataclass(frozen=True)
class Scales:
    """Of each of S series, fixed before the stream starts."""

    tau_y: Annotated[Array, Shape("S", least=LEAST_SCALE)]
    tau_d: Annotated[Array, Shape("S", least=LEAST_SCALE)]

    @classmethod
    def of(cls, reader: Reader, windows: CertificateWindows, tau_d_factor: float) -> Scales:
        """From windows of the learning part that have an outcome, under the mixture a stream starts with."""
        xp, known = namespace(windows.residual), windows.known(reader.channels)
        belief = xp.zeros_like(windows.residual[:, 0, :1]) + reader.mixture.prior
        squared, statistics = reader.look(windows, reader.mixture.start())
        tau_y = TAU_Y_FACTOR * xp.sqrt(quantile(reader.risk(squared, belief), TAU_Y_QUANTILE, known))
        # the expected pair even where pairs are drawn: a few draws of a mixture mostly choose the same voice twice
        expected = gaps(statistics, reader.expected_pair(belief))[..., 0]
        tau_d = tau_d_factor * xp.sqrt(quantile(expected, TAU_D_QUANTILE, known))
        return cls(at_least(tau_y, LEAST_SCALE), at_least(tau_d, LEAST_SCALE))


def proxy(risks: Array, tau: Array | float) -> Array:
    """Losses min(1, MSE / tau^2) in [0, 1], for risks (S, ...) and tau (S, 1, ...) or one for all."""
    square = tau * tau
    return namespace(risks).minimum(risks, square) / square  # in this order nothing overflows
