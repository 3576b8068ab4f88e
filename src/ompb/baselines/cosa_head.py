"""What COSA corrects a forecast with: a gated linear map of the forecast and of recent levels, and its objective."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ompb.types import Floats


@dataclass(eq=False)
class Head:
    r"""The correction of each channel c, with the newest levels as context.

    .. math:: \hat Y_c = Y^0_c + \tanh(g_c)\,(W_c [Y^0_c ; \mathrm{ctx}_c] + b_c)

    W and b are kept as one matrix that acts on [Y0; ctx; 1].
    """

    weights: Floats  # [W b], (C, H, H + K + 1)
    gate: Floats  # g, (C,)

    def corrected(self, inputs: Floats) -> Floats:
        """Forecasts (C, H, n) from inputs (C, H + K + 1, n)."""
        mixed = self.weights @ inputs
        return np.asarray(inputs[:, : mixed.shape[1]] + np.tanh(self.gate)[:, None, None] * mixed)


def head_inputs(base: Floats, context: Floats) -> Floats:
    """[Y0; ctx; 1], (C, H + K + 1), of a base forecast (H, C) and its context (K, C)."""
    return np.concatenate([base, context, np.ones((1, base.shape[1]))]).T


@dataclass(frozen=True, eq=False)
class Objective:
    r"""What is descended in each channel, over the last B complete pairs.

    .. math:: J = \frac1n \sum \lVert \hat Y - Y \rVert^2 + \lambda (\lVert W \rVert^2 + \lVert b \rVert^2 + g^2)

    with n the number of known cells.
    """

    inputs: Floats  # (C, H + K + 1, B)
    outcome: Floats  # (C, H, B); NaN where missing
    penalty: float

    def __call__(self, head: Head) -> tuple[Floats, Head]:
        r"""Losses (C,), and the gradient in the shape of a head.

        .. math:: \partial_{[W b]} J = \tfrac2n \tanh(g) \sum e\,[Y^0;\mathrm{ctx};1]^\top + 2\lambda [W b], \qquad
            \partial_g J = \tfrac2n (1 - \tanh^2 g) \sum e^\top u + 2 \lambda g

        with errors e and u = W [Y0; ctx] + b.
        """
        openness = np.tanh(head.gate)
        mixed = head.weights @ self.inputs  # u, (C, H, B)
        error = self.inputs[:, : mixed.shape[1]] + openness[:, None, None] * mixed - self.outcome
        known = ~np.isnan(error)
        error[~known] = 0.0
        count = np.maximum(known.sum(axis=(1, 2)), 1)
        loss = np.einsum("chb,chb->c", error, error) / count + self.penalty * (squares(head.weights) + head.gate**2)
        by_weights = (2 * openness / count)[:, None, None] * (error @ self.inputs.transpose(0, 2, 1))
        by_gate = 2 / count * (1 - openness**2) * np.einsum("chb,chb->c", error, mixed)
        gradient = Head(by_weights + 2 * self.penalty * head.weights, by_gate + 2 * self.penalty * head.gate)
        return loss, gradient


def squares(weights: Floats) -> Floats:
    """Squared norm in each channel, (C,)."""
    return np.asarray(np.einsum("chd,chd->c", weights, weights))
