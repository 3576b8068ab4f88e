"""What many cells need beside data and methods, looked for before the first of them begins: devices, GPT-2's weights.

Else each of them would fail by itself, for one cause.
"""

from __future__ import annotations

from collections.abc import Iterable

from ompb.bench.backbones import GPT4TS, NetworkLabel, RunContext
from ompb.bench.store import Cell
from ompb.errors import OmpbError, OptionError

CPU = "cpu"
DRAWN = "random"  # weights of GPT4TS that come from no file
ANY_SIZE = (96, 96, 1)  # context, horizon and channels: where weights lie does not depend on them


def require_devices(run_context: RunContext) -> None:
    """Raise `OptionError` for a device of a run that this machine lacks."""
    for name in dict.fromkeys((run_context.device, run_context.training_device)):
        if name != CPU:
            from ompb.forecasters.torch.recipes import usable_device

            usable_device(name)


def require_weights(cells: Iterable[Cell], run_context: RunContext) -> None:
    """Raise `OptionError` where the GPT-2 of cells comes from a checkpoint that is not at hand."""
    for backbone in dict.fromkeys(cell.backbone for cell in cells):
        label = NetworkLabel.parse(backbone)
        if label is None or label.name != GPT4TS or label.weights == DRAWN:
            continue
        from ompb.forecasters.torch.gpt4ts import GPT4TSConfig, locate

        config = label.config(ANY_SIZE, run_context.gpt2_checkpoint)
        assert isinstance(config, GPT4TSConfig)  # by its name
        try:
            locate(config)
        except OmpbError as error:
            raise OptionError(
                f"the weights of {backbone} are not at hand: {str(error).rstrip('.')}. Name a file or folder with "
                "--gpt2-checkpoint (in Python: gpt2_checkpoint=), or choose other backbones."
            ) from error
