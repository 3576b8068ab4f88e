"""Does training a network twice give the same bits? Trains each kind twice, for a few epochs, and says so.

    python benchmarks/same_network.py --device cuda [--gpt2-checkpoint FILE]

GPT4TS is left out without the weights it starts from.
"""

from __future__ import annotations

import argparse
import dataclasses

import numpy as np
import torch

from ompb.bench.backbones import NetworkLabel
from ompb.forecasters.torch import train

CONTEXT, HORIZON, CHANNELS, ROWS, EPOCHS = 96, 96, 7, 2000, 3


def is_repeated(label: NetworkLabel, device: str, checkpoint: str | None) -> bool:
    """Whether two trainings of a network on one series of random walks end in the same weights."""
    rows = np.random.default_rng(0).normal(size=(ROWS, CHANNELS)).cumsum(axis=0)
    config = label.config((CONTEXT, HORIZON, CHANNELS), checkpoint)
    training = dataclasses.replace(label.training("etth", 0, device), epochs=EPOCHS)
    one, other = (train(config, rows, training).model.state_dict() for _ in range(2))
    return all(torch.equal(tensor, other[name]) for name, tensor in one.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--gpt2-checkpoint")
    options = parser.parse_args()
    labels = [NetworkLabel("tcn"), NetworkLabel("autoformer")]
    if options.gpt2_checkpoint is not None:
        labels.append(NetworkLabel("gpt4ts", weights="gpt2-partial"))
    for label in labels:
        found = is_repeated(label, options.device, options.gpt2_checkpoint)
        print(f"{label} on {options.device}: {'the same bits' if found else 'NOT the same'}", flush=True)


if __name__ == "__main__":
    main()
