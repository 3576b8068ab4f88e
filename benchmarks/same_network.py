"""Does training a network twice give the same bits? Trains each kind for a few epochs, and says so.

    python benchmarks/same_network.py --device cuda [--gpt2-checkpoint FILE]

Once more on a GPU it is trained with steps that are not recorded, which must change nothing but the time that it takes.
GPT4TS is left out without the weights it starts from.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from unittest.mock import patch

import numpy as np
import torch

from ompb.bench.backbones import NetworkLabel
from ompb.forecasters.torch import TrainedForecaster, routine, train

CONTEXT, HORIZON, CHANNELS, ROWS, EPOCHS = 96, 96, 7, 2000, 3
NEVER = 10**9  # calls before a step is recorded


def trained(label: NetworkLabel, device: str, checkpoint: str | None) -> tuple[TrainedForecaster, float]:
    """A network, trained on a series of random walks, and the seconds that it took."""
    rows = np.random.default_rng(0).normal(size=(ROWS, CHANNELS)).cumsum(axis=0)
    config = label.config((CONTEXT, HORIZON, CHANNELS), checkpoint)
    training = dataclasses.replace(label.training("etth", 0, device), epochs=EPOCHS)
    start = time.perf_counter()
    return train(config, rows, training), time.perf_counter() - start


def in_words(one: TrainedForecaster, other: TrainedForecaster) -> str:
    """Whether two networks have the same weights."""
    weights = other.model.state_dict()
    same = all(torch.equal(tensor, weights[name]) for name, tensor in one.model.state_dict().items())
    return "the same bits" if same else "NOT the same"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--gpt2-checkpoint")
    options = parser.parse_args()
    labels = [NetworkLabel("tcn"), NetworkLabel("autoformer")]
    if options.gpt2_checkpoint is not None:
        labels.append(NetworkLabel("gpt4ts", weights="gpt2-partial"))
    for label in labels:
        chosen = label, options.device, options.gpt2_checkpoint
        (first, _), (again, seconds) = trained(*chosen), trained(*chosen)
        print(f"{label} on {options.device}: {in_words(first, again)}, {seconds:.1f} s", flush=True)
        if options.device != "cpu":
            with patch.object(routine, "WARM_UP", NEVER):
                plain, seconds = trained(*chosen)
            print(f"{label}, nothing recorded: {in_words(first, plain)}, {seconds:.1f} s", flush=True)


if __name__ == "__main__":
    main()
