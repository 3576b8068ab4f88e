"""The paper's preset: a diagonal Gaussian head that Adam moves along the certificate and each revealed outcome.

Imported on demand only; ``import ompb`` does not need torch. Base forecasts and outcomes come in standardised with the
source mean and standard deviation; only `OnlineAdaptedHead`, which moves a part of the forecaster, calls one.
Arithmetic is float32, as in the paper's software; the certificate of the default head, in `ompb.core`, is float64.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> base = rng.normal(size=(300, 4, 2))
>>> head = GradientHead.fit(base, base + rng.normal(size=base.shape), PaperPreset(epochs=2))
>>> online = head.start()
>>> mean, sd = online.forecast(base[0])
>>> terms = online.learn(base[0], base[0] + 1.0)
>>> mean.shape, sd.shape, float(terms.loss) > float(terms.bound)
((4, 2), (4, 2), True)
"""

from ompb.floor.extras import extra

with extra("torch", needed_by="ompb.gradient"):
    import torch as _torch  # noqa: F401

from ompb.gradient.adapted import OnlineAdaptedHead
from ompb.gradient.head import Head, Law
from ompb.gradient.objective import Objective, Terms
from ompb.gradient.preset import GradientHead, OnlineGradientHead
from ompb.gradient.settings import PaperPreset

__all__ = [
    "GradientHead",
    "Head",
    "Law",
    "Objective",
    "OnlineAdaptedHead",
    "OnlineGradientHead",
    "PaperPreset",
    "Terms",
]
