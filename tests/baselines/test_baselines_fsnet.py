"""FSNet against plain convolutions, loops and hand-made memories."""

import math
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch.nn import functional

from ompb.baselines import fsnet_training as module
from ompb.baselines.fsnet import AdaptiveConvs, FSNet, FSNetSettings, RevIN
from ompb.baselines.fsnet_training import pretrain
from ompb.baselines.network import known_mse
from ompb.errors import ForecasterError, OptionError, TooShortError
from ompb.forecasters.torch.training import own_random_state

SMALL = FSNetSettings(width=4, representation=8, blocks=8, controller=5, slots=6)
HORIZON, CHANNELS = 3, 2


@pytest.fixture(autouse=True)
def in_double_precision() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    with own_random_state(0, torch.device("cpu")):
        yield
    torch.set_default_dtype(torch.float32)


def stepped(context: int, steps: int = 0, settings: FSNetSettings = SMALL) -> FSNet:
    """A network after some steps on random pairs."""
    model = FSNet(context, HORIZON, CHANNELS, settings).eval()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(steps):
        step(model, optimiser)
    return model


def step(model: FSNet, optimiser: Any, online: bool = False) -> None:
    loss = known_mse(model(torch.randn(2, model.rows, CHANNELS)), torch.randn(2, HORIZON, CHANNELS))
    optimiser.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    optimiser.step()
    model.refresh(online=online)


def banks(model: FSNet) -> list[AdaptiveConvs]:
    return [model.dilated, model.pointwise, model.widen, model.last]


def test_revin_gives_back_exactly_what_it_took() -> None:
    revin = RevIN(CHANNELS)
    revin.gain.data, revin.shift.data = torch.tensor([0.7, -2.0]), torch.tensor([0.3, 5.0])
    windows = 3 + 10 * torch.randn(4, 20, CHANNELS)
    normalised, level, scale = revin.normalise(windows)
    torch.testing.assert_close(revin.restore(normalised, level, scale), windows, rtol=1e-8, atol=1e-8)
    plain = (normalised - revin.shift) / revin.gain
    torch.testing.assert_close(plain.mean(dim=1), torch.zeros(4, CHANNELS))
    torch.testing.assert_close(plain.var(dim=1, correction=0), torch.ones(4, CHANNELS), rtol=1e-4, atol=0)


def test_a_shifted_and_scaled_window_shifts_and_scales_the_forecast() -> None:
    model, windows = stepped(24, steps=2), torch.randn(3, 24, CHANNELS)
    torch.testing.assert_close(model(4 + 9 * windows), 4 + 9 * model(windows), rtol=1e-3, atol=1e-3)


def test_factors_of_one_leave_a_plain_convolution() -> None:
    bank = AdaptiveConvs(2, 4, 8, 3, SMALL)
    torch.nn.init.normal_(bank.bias)
    kernels, biases = bank.scaled(torch.ones(2, 4, 3 + 2 * 2))
    torch.testing.assert_close(kernels, bank.kernel)
    torch.testing.assert_close(biases, bank.bias)


def test_factors_scale_inputs_by_tap_biases_and_outputs() -> None:
    bank, x = AdaptiveConvs(1, 4, 8, 3, SMALL), torch.randn(2, 4, 9)
    torch.nn.init.normal_(bank.bias)
    factors = torch.randn(1, 4, 7)
    weight = factors[0, :, :3]
    bias, output = (torch.stack([factors[0, o // 2, first + o % 2] for o in range(8)]) for first in (3, 5))
    plain = functional.conv1d(x, bank.kernel[0] * weight, padding=1) + (bank.bias[0] * bias)[:, None]
    kernels, biases = bank.scaled(factors)
    torch.testing.assert_close(functional.conv1d(x, kernels[0], biases[0], padding=1), output[:, None] * plain)


def test_the_controller_reads_one_chunk_per_input_channel() -> None:
    bank = AdaptiveConvs(2, 4, 8, 3, SMALL)
    bank.slow.normal_()
    for n, factors in enumerate(bank.controlled()):
        for a in range(4):
            chunk = bank.slow[n, a * 24 : (a + 1) * 24]
            hidden = chunk @ bank.inner[n] + bank.inner_bias[n, 0]
            expected = (hidden * torch.sigmoid(hidden)) @ bank.outer[n] + bank.outer_bias[n, 0]
            torch.testing.assert_close(factors[a], expected)


def whole_length(model: FSNet, rows: Any) -> tuple[Any, list[Any]]:
    """The encoder as it is written down: every row through every dilated three-tap convolution. And its kernels."""
    convs = []
    for bank in banks(model):
        for kernel, bias in zip(*bank.scaled(bank.controlled()), strict=True):
            outer = torch.randn(*kernel.shape[:2], 3)  # where the model holds the centre tap alone
            full = kernel.detach() if kernel.shape[2] == 3 else torch.cat([outer[..., :1], kernel, outer[..., 2:]], 2)
            convs.append((full.detach().requires_grad_(), bias.detach()))
    x = model.embed(rows).transpose(1, 2)
    for block in range(len(convs) // 2):
        dilation, branch = 2**block, x
        for kernel, bias in convs[2 * block : 2 * block + 2]:
            branch = functional.conv1d(functional.gelu(branch), kernel, bias, padding=dilation, dilation=dilation)
        shortcut = x if branch.shape == x.shape else model.shortcut(x.transpose(1, 2)).transpose(1, 2)
        x = branch + shortcut
    return x[..., -1], [kernel for kernel, _ in convs]


@pytest.mark.parametrize("rows", [2, 5, 24, 32, 33, 60])
def test_leaving_out_rows_and_taps_changes_nothing(rows: int) -> None:
    model, windows = stepped(rows, steps=2), torch.randn(3, rows, CHANNELS)
    found, (expected, kernels) = model.represent(windows), whole_length(model, windows)
    torch.testing.assert_close(found, expected)
    expected.square().sum().backward()
    for block, first in enumerate(range(0, len(kernels), 2)):
        for kernel in kernels[first : first + 2]:  # an outer tap that is left out would never have had a gradient
            assert bool((kernel.grad[..., [0, 2]] == 0).all()) == (2**block >= rows)


def test_published_sizes() -> None:
    model = FSNet(96, 24, 7, FSNetSettings())
    assert model.rows == 60
    assert [tuple(bank.kernel.shape) for bank in banks(model)] == [
        (12, 64, 64, 3),
        (8, 64, 64, 1),
        (1, 320, 64, 1),
        (1, 320, 320, 1),
    ]
    assert model.head.weight.shape == (24 * 7, 320)


def test_older_rows_are_not_looked_at() -> None:
    model, windows = stepped(96, steps=1), torch.randn(1, 96, CHANNELS)
    older = windows.clone()
    older[:, :36] += 100
    torch.testing.assert_close(model(windows), model(older), rtol=0, atol=0)
    assert not torch.allclose(model(windows), model(windows.roll(1, dims=1)))


def test_averages_of_gradients_and_factors_against_a_loop() -> None:
    model = stepped(24)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    bank, place = model.dilated, 3
    slow = fast = torch.zeros(4, 4, 3)
    address = torch.zeros_like(bank.address[place])
    for _ in range(5):
        step(model, optimiser)
        assert bank.kernel.grad is not None
        gradient = bank.kernel.grad[place]
        new = torch.empty_like(gradient)
        for o in range(4):
            for j in range(3):
                new[o, :, j] = gradient[o, :, j] / math.sqrt(sum(g**2 for g in gradient[o, :, j].tolist()))
        slow, fast = 0.9 * slow + 0.1 * new, 0.3 * fast + 0.7 * new
        torch.testing.assert_close(bank.slow[place], slow.flatten())
        torch.testing.assert_close(bank.fast[place], fast.flatten())
        address = 0.3 * address + 0.7 * bank.controlled()[place].flatten().detach()
        torch.testing.assert_close(bank.address[place], address)


def test_a_forecast_without_gradient_uses_the_factors_of_the_newest_step() -> None:
    model, windows = stepped(24, steps=3), torch.randn(2, 24, CHANNELS)
    with torch.no_grad():
        found = model(windows)
    torch.testing.assert_close(found, model(windows).detach())


def turned(online: bool) -> tuple[AdaptiveConvs, Any, Any]:
    """Two convolutions after a step that turns the gradient of the second; with the memory before and the address."""
    bank = AdaptiveConvs(2, 4, 4, 1, SMALL)
    bank.slow.normal_()
    bank.kernel.grad = torch.stack([bank.slow[0], -bank.slow[1]]).view_as(bank.kernel) * 1e3
    memory = bank.memory.clone()
    bank.refresh(online=online)
    return bank, memory, bank.address[1]


def test_a_turn_of_the_gradient_reads_and_writes_two_slots_by_attention() -> None:
    bank, before, address = turned(online=True)
    scores = [math.exp(float(address @ before[1][:, k]) / 0.5) for k in range(6)]
    attention = [score / sum(scores) for score in scores]
    one, two = sorted(range(6), key=lambda k: -attention[k])[:2]
    read = attention[one] * before[1][:, one] + attention[two] * before[1][:, two]
    controlled = bank.controlled().detach()
    torch.testing.assert_close(bank.factors[1], 0.75 * controlled[1] + 0.25 * read.view(4, 5))
    torch.testing.assert_close(bank.factors[0], controlled[0])  # its gradient went on as before
    torch.testing.assert_close(bank.memory[0], before[0])
    expected = before[1].clone()
    for k in (one, two):
        expected[:, k] = 0.75 * before[1][:, k] + 0.25 * attention[k] * read
    torch.testing.assert_close(bank.memory[1], expected / max(1.0, frobenius(expected)))
    torch.testing.assert_close(bank()[0], bank.scaled(bank.factors)[0])


def frobenius(memory: Any) -> float:
    """The Frobenius norm, by a sum over every cell."""
    return math.sqrt(sum(cell**2 for cell in memory.flatten().tolist()))


def test_a_memory_has_length_one_as_a_whole() -> None:
    bank = AdaptiveConvs(2, 4, 4, 1, SMALL)
    for memory in bank.memory:  # random at the start, and longer than 1
        assert frobenius(memory) == pytest.approx(1)
    assert len({round(float(slot.norm()), 6) for slot in bank.memory[0].T}) > 1  # slots are not cut one by one


def test_a_memory_that_is_too_long_after_writing_is_cut_as_a_whole() -> None:
    bank = AdaptiveConvs(1, 4, 4, 1, SMALL)
    bank.memory.mul_(30)
    direction, before = bank.memory[0].clone(), frobenius(bank.memory[0])
    bank.address.copy_(bank.memory[0].sum(dim=1)[None])
    bank._recall(torch.tensor([True]))
    assert before > 1
    assert frobenius(bank.memory[0]) == pytest.approx(1)
    ratios = [float(bank.memory[0][:, k].norm() / direction[:, k].norm()) for k in range(SMALL.slots)]
    middle = sorted(ratios)[SMALL.slots // 2]
    # The slots that were not written, all but two, keep their proportions.
    assert sum(ratio == pytest.approx(middle) for ratio in ratios) >= SMALL.slots - SMALL.read


def test_what_was_recalled_holds_for_one_step() -> None:
    bank, _, _ = turned(online=True)
    bank.kernel.grad = torch.zeros_like(bank.kernel)
    bank.slow.copy_(bank.fast)
    bank.refresh(online=True)
    torch.testing.assert_close(bank.factors, bank.controlled().detach())


def test_the_memory_is_not_asked_offline() -> None:
    bank, before, _ = turned(online=False)
    torch.testing.assert_close(bank.memory, before)
    torch.testing.assert_close(bank.factors, bank.controlled().detach())


def pairs(count: int = 80) -> tuple[Any, Any]:
    """Windows of a noisy wave, and what follows them."""
    time = torch.arange(count + 12 + HORIZON)[:, None]
    rows = torch.sin(time / 3 + torch.tensor([0.0, 1.0])) + 0.05 * torch.randn(len(time), CHANNELS)
    stretches = rows.unfold(0, 12 + HORIZON, 1)[:count].transpose(1, 2).clone()
    return stretches[:, :12], stretches[:, 12:]


def test_pretraining_lowers_the_held_out_error() -> None:
    windows, outcomes = pairs()
    model = stepped(12)
    before = known_mse(model(windows[-8:]), outcomes[-8:])
    pretrain(model, windows, outcomes, FSNetSettings(epochs=20, batch=8, rate=5e-3))
    assert known_mse(model.eval()(windows[-8:]), outcomes[-8:]) < 0.5 * before


def test_pretraining_keeps_the_best_epoch_and_stops_after_the_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    errors = iter([5.0, 4.0, 6.0, 4.0, 9.0, 1.0])

    def recording(model: Any, windows: Any) -> Any:
        seen.append(model.head.weight.detach().clone())
        return torch.full((len(windows), HORIZON, CHANNELS), math.sqrt(next(errors)))

    monkeypatch.setattr(module, "in_bulk", recording)
    windows, outcomes = pairs()
    outcomes[72:] = 0
    model = stepped(12)
    pretrain(model, windows, outcomes, FSNetSettings(epochs=20, batch=8, patience=3))
    assert len(seen) == 5
    assert torch.equal(model.head.weight, seen[1])


def test_pretraining_learns_from_no_outcome_that_reaches_into_the_held_out_ones() -> None:
    found = []
    for poison in (0.0, 1e6):
        torch.manual_seed(0)
        windows, outcomes = pairs()
        outcomes[72 - HORIZON + 1 : 72] = poison  # windows 72 to 79 are held out
        model = stepped(12)
        pretrain(model, windows, outcomes, FSNetSettings(epochs=1, batch=8))
        found.append(model.head.weight)
    assert torch.equal(*found)


def test_the_rate_halves_after_each_epoch_if_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    rates: list[float] = []

    def recording(_: FSNet, optimiser: torch.optim.AdamW, *__: torch.Tensor) -> None:
        rates.append(optimiser.param_groups[0]["lr"])

    monkeypatch.setattr(module, "_descend", recording)
    windows, outcomes = pairs()
    for halves, expected in ((True, [0.8, 0.4, 0.2, 0.1]), (False, [0.8] * 4)):
        rates.clear()
        optimiser = pretrain(stepped(12), windows, outcomes, FSNetSettings(rate=0.8, epochs=6, halves=halves))
        batches = len(rates) // 4  # nothing gets better: the first epoch, and three more
        assert rates == pytest.approx([rate for rate in expected for _ in range(batches)])
        assert optimiser.param_groups[0]["lr"] == pytest.approx(expected[-1])


def test_pretraining_hands_on_what_its_optimiser_knew_at_the_best_epoch() -> None:
    windows, outcomes = pairs()
    model = stepped(12)
    optimiser = pretrain(model, windows, outcomes, FSNetSettings(epochs=2, batch=8))
    held, batches = 8, math.ceil((80 - 8 - HORIZON + 1) / 8)
    assert held == math.ceil(0.1 * len(windows))
    steps = {int(state["step"]) for state in optimiser.state.values()}
    assert steps <= {batches, 2 * batches}
    assert len(steps) == 1
    owned = [parameter for group in optimiser.param_groups for parameter in group["params"]]
    assert all(one is other for one, other in zip(owned, model.parameters(), strict=True))


def test_pretraining_says_what_it_cannot_do() -> None:
    windows, outcomes = pairs(3)
    with pytest.raises(TooShortError, match="3 source windows are too few"):
        pretrain(stepped(12), windows, outcomes, SMALL)
    windows, outcomes = pairs()
    with pytest.raises(ForecasterError, match="diverged"):
        pretrain(stepped(12), windows * torch.nan, outcomes, SMALL)
    with pytest.raises(TooShortError, match="2 rows"):
        stepped(1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 0}, "width = 0"),
        ({"representation": 100}, "a multiple of width = 64"),
        ({"blocks": 7}, "from 8"),
        ({"read": 33}, "to 32"),
        ({"held_out": 1.0}, "held_out = 1.0"),
    ],
)
def test_settings_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        FSNetSettings(**options)


def test_the_random_state_of_torch_is_given_back() -> None:
    before = torch.get_rng_state()
    with own_random_state(5, torch.device("cpu")):
        torch.randn(3)
    assert torch.equal(before, torch.get_rng_state())
