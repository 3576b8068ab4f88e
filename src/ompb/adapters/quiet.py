"""What libraries say at every call, kept from the reader of a stream."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

LOGGERS = (
    "darts",
    "lightning.fabric",
    "lightning.pytorch",
    "lightning_fabric",
    "pytorch_lightning",
    *(f"{package}.utilities.rank_zero" for package in ("lightning.pytorch", "lightning_fabric", "pytorch_lightning")),
)
# as the warnings name the modules they come from
TALKERS = (
    r"(darts|gluonts|lightning|lightning_fabric|neuralforecast|pytorch_lightning|sktime|torch|utilsforecast)(\.|$)"
)


@contextmanager
def quiet() -> Iterator[None]:
    """Around a call of a library: its own logs below errors, and its own warnings, are not shown.

    >>> with quiet():
    ...     logging.getLogger("pytorch_lightning").warning("one Trainer more")
    """
    loggers = [logging.getLogger(name) for name in LOGGERS]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=TALKERS)
        try:
            for logger in loggers:
                logger.setLevel(logging.ERROR)
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
