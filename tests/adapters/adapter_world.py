"""A seasonal source with true stamps, and a stream whose level has moved, for models that are fitted in a moment."""

from typing import Any

import numpy as np

from ompb.datasets.synthetic import shifted_stream

CONTEXT, HORIZON, SEASON, CHANNELS, ROWS = 24, 6, 12, 2, 400
SOURCE, STREAM = shifted_stream("level", seed=3, source_rows=ROWS, target_rows=90, channels=CHANNELS, season=SEASON)
TIMES = np.datetime64("2024-01-01T00", "us") + np.arange(len(SOURCE) + len(STREAM)) * np.timedelta64(1, "h")
SIZES: dict[str, Any] = {"context": CONTEXT, "horizon": HORIZON}
STAMPS: dict[str, Any] = {"times": TIMES[:ROWS], "stream_times": TIMES[ROWS:]}
