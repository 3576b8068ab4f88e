"""Networks: layouts, mode, gradients, device and dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from adapter_world import CHANNELS, CONTEXT, HORIZON, SIZES, SOURCE, STAMPS, STREAM

import ompb
from ompb.errors import CheckError, ForecasterError, OptionError
from ompb.seam.query import Query
from ompb.testing import check_forecaster

pytest.importorskip("torch")

import torch

from ompb.adapters import torch as adapter

QUERY = Query(np.stack([SOURCE[t : t + CONTEXT] for t in range(9)]), np.arange(9) + CONTEXT - 1)


class Net(torch.nn.Module):
    """The last season again, by way of a linear map along time; dropout shows the mode."""

    def __init__(self, layout: str = "n l c", quantiles: int = 0) -> None:
        super().__init__()
        self.layout, self.quantiles = layout, quantiles
        self.map = torch.nn.Linear(CONTEXT, HORIZON, bias=False)
        self.dropout = torch.nn.Dropout(0.5)
        self.calls: list[tuple[int, bool, torch.dtype]] = []
        with torch.no_grad():
            self.map.weight[:] = torch.eye(CONTEXT)[CONTEXT - 12 : CONTEXT - 12 + HORIZON]

    def forward(self, windows: Any) -> Any:
        self.calls.append((len(windows), torch.is_grad_enabled(), windows.dtype))
        by_time = windows.transpose(1, 2) if self.layout == "n l c" else windows
        said = self.dropout(self.map(by_time))
        said = said.transpose(1, 2) if self.layout == "n l c" else said
        if self.quantiles:
            said = said[..., None] + torch.linspace(-1, 1, self.quantiles)
        return said


EXPECTED = QUERY.windows[:, CONTEXT - 12 : CONTEXT - 12 + HORIZON]


@pytest.mark.parametrize("layout", ["n l c", "n c l", "n l"])
def test_every_layout_says_the_same(layout: Any) -> None:
    said = adapter.wrap(Net(layout), layout=layout, **SIZES).forecast(QUERY)
    np.testing.assert_allclose(said, EXPECTED, rtol=1e-6)
    assert said.dtype == np.float64


@pytest.mark.parametrize("layout", ["n l c", "n c l", "n l"])
def test_quantiles_come_last(layout: Any) -> None:
    forecaster = adapter.wrap(Net(layout, 3), layout=layout, quantiles=(0.1, 0.5, 0.9), **SIZES)
    said = forecaster.forecast(QUERY)
    np.testing.assert_allclose(said, EXPECTED[..., None] + np.array([-1.0, 0.0, 1.0]), rtol=1e-5)
    forecaster.checked(SOURCE)


def test_training_mode_is_left_and_restored_part_by_part() -> None:
    """Without the guard the dropout of a network in training mode halves what it says, at random."""
    net = Net().train()
    net.map.eval()
    forecaster = adapter.wrap(net, **SIZES)
    np.testing.assert_allclose(forecaster.forecast(QUERY), EXPECTED, rtol=1e-6)
    assert (net.training, net.dropout.training, net.map.training) == (True, True, False)
    forecaster.checked(SOURCE)
    with pytest.raises(CheckError, match="training mode"):
        ompb.check(lambda windows: net(torch.from_numpy(windows).float()), SOURCE, **SIZES)


def test_the_mode_is_restored_after_a_failure() -> None:
    net = Net("n l").train()
    with pytest.raises(ForecasterError, match="2 axes"):
        adapter.wrap(torch.nn.Sequential(net, torch.nn.Unflatten(0, (1, -1))), layout="n l", **SIZES).forecast(QUERY)
    assert net.training


def test_no_gradients_and_windows_of_its_dtype_in_batches() -> None:
    net = Net()
    adapter.wrap(net, batch=4, **SIZES).forecast(QUERY)
    assert net.calls == [(4, False, torch.float32), (4, False, torch.float32), (1, False, torch.float32)]
    assert all(parameter.requires_grad for parameter in net.parameters())
    double = Net().double()
    adapter.wrap(double, **SIZES).forecast(QUERY)
    assert double.calls == [(9, False, torch.float64)]
    with pytest.raises(ForecasterError, match="failed on windows"):  # what a float32 network says to float64
        ompb.check(lambda windows: Net()(torch.from_numpy(windows)), SOURCE, **SIZES)


def test_windows_go_where_the_parameters_are() -> None:
    assert adapter.wrap(Net().to("meta"), **SIZES).device == torch.device("meta")
    assert adapter.wrap(Net(), device="meta", dtype=torch.float16, **SIZES).dtype == torch.float16


def test_the_weights_are_untouched_and_the_input_is_not_shared() -> None:
    class InPlace(Net):
        def forward(self, windows: Any) -> Any:
            windows -= windows.mean()
            return super().forward(windows)

    double = InPlace().double()
    before = QUERY.windows.copy()
    adapter.wrap(double, **SIZES).forecast(QUERY)
    np.testing.assert_array_equal(QUERY.windows, before)


def test_what_cannot_work_is_refused() -> None:
    with pytest.raises(ForecasterError, match="pass a torch"):
        adapter.wrap(lambda windows: windows, **SIZES)
    with pytest.raises(OptionError, match="layout"):
        adapter.wrap(Net(), layout="c n l", **SIZES)  # type: ignore[arg-type]
    with pytest.raises(ForecasterError, match="quantiles are"):
        adapter.wrap(Net(), quantiles=(0.5, 0.1), **SIZES)
    with pytest.raises(OptionError, match="dtype = 'float32' is no type of torch"):
        adapter.wrap(Net(), dtype="float32", **SIZES)
    with pytest.raises(OptionError, match="device = 'tpu9' is none of torch"):
        adapter.wrap(Net(), device="tpu9", **SIZES)
    of_one_channel = torch.nn.Linear(CONTEXT, HORIZON)
    with pytest.raises(
        ForecasterError, match=r"failed on windows .* in the layout 'n l c': RuntimeError: .* one of n l c"
    ):
        adapter.wrap(of_one_channel, **SIZES).forecast(QUERY)
    lstm = torch.nn.LSTM(CHANNELS, CHANNELS, batch_first=True)
    with pytest.raises(ForecasterError, match="returned a tuple"):
        adapter.wrap(lstm, **SIZES).forecast(QUERY)


def test_on_a_shifted_stream() -> None:
    run = check_forecaster(adapter.wrap(Net(), **SIZES), SOURCE, STREAM, **SIZES, **STAMPS)
    assert np.nanmean(np.abs(run.mean - run.outcome)) < np.nanmean(np.abs(run.base - run.outcome)) * 1.05
