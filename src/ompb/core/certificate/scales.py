"""What turns squared errors and gaps into proxies in [0, 1]: read off learning windows before a stream starts."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ompb.core.arrays import Array, namespace, quantile
from ompb.core.certificate.disagreement import gaps
from ompb.core.certificate.windows import CertificateWindows, Reader
from ompb.errors import OptionError
from ompb.shapes import LARGEST

# Quantiles of the root mean squared error, and of the gap.
TAU_Y_QUANTILE, TAU_D_QUANTILE = 0.9, 0.5
# tau_y lies well beyond that quantile: at the quantile itself a third of a stream's losses would be cut off at 1.
TAU_Y_FACTOR = 2.0
# A source without error or disagreement still gets scales to divide by.
LEAST_SCALE = 1e-9


@dataclass(frozen=True)
class Scales:
    """Fixed before the stream starts."""

    tau_y: float
    tau_d: float

    def __post_init__(self) -> None:
        for name, scale in (("tau_y", self.tau_y), ("tau_d", self.tau_d)):
            if not LEAST_SCALE <= scale <= LARGEST:
                raise OptionError(f"{name} = {scale} is no scale; accepted: {LEAST_SCALE:g} to {LARGEST:g}.")

    @classmethod
    def of(cls, reader: Reader, windows: CertificateWindows, tau_d_factor: float) -> Scales:
        """From windows of the learning part, under the mixture a stream starts with."""
        xp = namespace(windows.residual)
        belief = xp.zeros_like(windows.residual[:, 0, :1]) + reader.mixture.prior
        squared, statistics = reader.look(windows, reader.mixture.start())
        tau_y = TAU_Y_FACTOR * math.sqrt(
            float(quantile(xp.reshape(reader.risk(squared, belief), (-1,)), TAU_Y_QUANTILE))
        )
        # the expected pair even where pairs are drawn: a few draws of a mixture mostly choose the same voice twice
        expected = gaps(statistics, reader.expected_pair(belief))
        tau_d = tau_d_factor * math.sqrt(float(quantile(xp.reshape(expected, (-1,)), TAU_D_QUANTILE)))
        return cls(max(tau_y, LEAST_SCALE), max(tau_d, LEAST_SCALE))


def proxy(risks: Array, tau: float) -> Array:
    """Losses min(1, MSE / tau^2) in [0, 1]."""
    square = tau * tau
    return namespace(risks).minimum(risks, square) / square  # in this order nothing overflows
