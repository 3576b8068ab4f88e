"""The numbers of the paper's two stages."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

from ompb.core.certificate.disagreement import DisagreementMode
from ompb.core.certificate.kinds import Kind
from ompb.floor import checks


@dataclass(frozen=True)
class PaperPreset:
    """Settings of both stages; the defaults are those behind the paper's tables, but for ILI.

    There the paper took batches of 32, offline and of the replay windows, of which here every step takes all.
    """

    # offline
    epochs: int = 20
    batch: int = 256
    offline_rate: float = 1e-3  # of Adam
    logit: float = 0.0  # of the gate before training: s = 0.5
    log_sd: float = 0.0  # of every weight before training

    # online
    steps: int = 5  # J, per outcome
    online_rate: float = 5e-3  # of one Adam for the whole stream
    draws: int = 5  # K
    replay: int = 256  # source windows kept as the anchor, drawn once
    ring: int = 64  # target windows the disagreement looks back on
    kind: str = "freedman"
    delta: float = 0.05
    # "auto" is the root of the replay windows' median gap ||h - h'||^2 / (H C) when the stream starts. The paper's
    # software divides the plain sum ||h - h'||^2 by 5^2 instead: pass 5 / sqrt(H C) for that.
    disagreement_scale: Literal["auto"] | float = "auto"

    seed: int = 0
    device: str = "cpu"

    # what the paper takes away or turns; ``steps`` = 0 is the head as the source left it
    gated: bool = True  # False: s = 1 for ever
    certified: bool = True  # False: online only the error on the newest outcome is descended
    tau_d_factor: float = 1.0  # on the disagreement's scale
    variance_factor: float = 1.0  # on the variance that "freedman" and "subgamma" estimate
    disagreement: DisagreementMode = "clipped"

    def __post_init__(self) -> None:
        checks.check_fields(self, checks.count, "batch", "replay", "ring")
        checks.check_fields(self, partial(checks.count, least=0), "epochs", "steps")
        checks.check_fields(self, partial(checks.count, least=2), "draws")
        checks.check_fields(self, checks.positive, "offline_rate", "online_rate", "tau_d_factor", "variance_factor")
        checks.check_fields(self, checks.share, "delta")
        checks.check_fields(self, checks.seed, "seed")
        checks.check_fields(self, checks.flag, "gated", "certified")
        checks.choice("kind", self.kind, Kind.tags)
        checks.choice("disagreement", self.disagreement, get_args(DisagreementMode))
        if self.disagreement_scale != "auto":
            accepted = "'auto', or a positive number"
            checks.number("disagreement_scale", self.disagreement_scale, accepted, 0, math.inf, ends=(False, False))
