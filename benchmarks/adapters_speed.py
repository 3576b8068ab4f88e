"""How many windows a second the wrapped models of other libraries forecast, many and one at a time.

    OMP_NUM_THREADS=1 .venv-adapters/bin/python benchmarks/adapters_speed.py --out results/adapters-speed.md

One small model of each library is fitted to a synthetic source and wrapped; one of LightGBM in each of the ways that a
regressor can forecast in. What is timed is ``forecast`` of the wrapped model: the library's own call, and all that the
adapter does around it. CPU time is taken, the best of some rounds.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np

import ompb.adapters
from ompb.adapters import Adapter
from ompb.adapters.quiet import quiet
from ompb.datasets.synthetic import shifted_stream
from ompb.seam.query import Query
from ompb.types import Floats

SEASON = 24
START = np.datetime64("2024-01-01T00", "us")
TRAINER = {"accelerator": "cpu", "enable_progress_bar": False, "enable_model_summary": False, "logger": False}
HEADINGS = ("library", "model", "windows/s, many", "windows/s, one")
# How a regressor of one output can give a forecast, as `ompb.adapters.sklearn.wrap` is told.
WAYS: dict[str, dict[str, bool]] = {
    "direct": {},
    "recursive": {"recursive": True},
    "joint": {"joint": True},
    "joint, recursive": {"joint": True, "recursive": True},
}


class World(NamedTuple):
    """What the models are fitted to, and the sizes they are asked in."""

    source: Floats  # (T, C)
    context: int
    horizon: int
    folder: Path  # for what training writes

    @property
    def channel(self) -> Floats:
        """The first one, for models of one series."""
        return self.source[:, 0]

    @property
    def long(self) -> Any:
        """The source as the libraries of Nixtla take it."""
        import pandas as pd

        hours = pd.date_range(START, periods=len(self.source), freq="h")
        frames = [pd.DataFrame({"unique_id": str(c), "ds": hours, "y": y}) for c, y in enumerate(self.source.T)]
        return pd.concat(frames, ignore_index=True)

    def query(self, windows: int) -> Query:
        last = self.context - 1 + np.arange(windows)
        rows = np.stack([self.source[place + 1 - self.context : place + 1] for place in last])
        return Query(rows, last, START + last * np.timedelta64(1, "h"))


def of_sklearn(world: World) -> Any:
    from sklearn.linear_model import LinearRegression

    from ompb.adapters.sklearn import design

    return LinearRegression().fit(*design(world.source, context=world.context, horizon=world.horizon))


def of_lightgbm(world: World, **way: bool) -> Any:
    from lightgbm import LGBMRegressor
    from sklearn.multioutput import MultiOutputRegressor

    from ompb.adapters.sklearn import design

    trees = LGBMRegressor(n_estimators=20, verbose=-1, n_jobs=1)
    rows, targets = design(world.source, context=world.context, horizon=world.horizon, **way)
    return (trees if targets.ndim == 1 else MultiOutputRegressor(trees)).fit(rows, targets)


def of_skforecast(world: World) -> Any:
    import pandas as pd
    from skforecast.recursive import ForecasterRecursive
    from sklearn.linear_model import LinearRegression

    model = ForecasterRecursive(LinearRegression(), lags=world.context)
    model.fit(pd.Series(world.channel))
    return model


def of_statsforecast(world: World) -> Any:
    from statsforecast.models import AutoETS

    return AutoETS(season_length=SEASON, model="ANA").fit(world.channel)


def of_mlforecast(world: World) -> Any:
    from mlforecast import MLForecast
    from sklearn.linear_model import LinearRegression

    return MLForecast({"line": LinearRegression()}, freq="h", lags=[1, 2, SEASON]).fit(world.long)


def of_neuralforecast(world: World) -> Any:
    from neuralforecast import NeuralForecast
    from neuralforecast.models import NLinear

    sizes = {"h": world.horizon, "input_size": world.context, "max_steps": 20, "val_check_steps": 20}
    model = NeuralForecast([NLinear(**sizes, **TRAINER)], freq="h")
    model.fit(world.long)
    return model


def of_darts(world: World) -> Any:
    from darts import TimeSeries
    from darts.models import NLinearModel

    series = [TimeSeries.from_values(y.astype(np.float32)) for y in world.source.T]
    sizes = {"input_chunk_length": world.context, "output_chunk_length": world.horizon, "n_epochs": 1}
    return NLinearModel(**sizes, pl_trainer_kwargs=TRAINER).fit(series)


def of_gluonts(world: World) -> Any:
    from gluonts.dataset.common import ListDataset
    from gluonts.torch import SimpleFeedForwardEstimator

    series = ListDataset([{"start": "2024-01-01", "target": y} for y in world.source.T], freq="h")
    trainer = {**TRAINER, "max_epochs": 1, "default_root_dir": world.folder}
    sizes = {"prediction_length": world.horizon, "context_length": world.context, "num_batches_per_epoch": 10}
    return SimpleFeedForwardEstimator(**sizes, trainer_kwargs=trainer).train(series)


def of_sktime(world: World) -> Any:
    import pandas as pd
    from sklearn.linear_model import LinearRegression
    from sktime.forecasting.compose import make_reduction

    return make_reduction(LinearRegression(), window_length=world.context).fit(pd.Series(world.channel))


MODELS: dict[str, Callable[[World], Any]] = {
    "scikit-learn": of_sklearn,
    "lightgbm": of_lightgbm,
    "skforecast": of_skforecast,
    "statsforecast": of_statsforecast,
    "mlforecast": of_mlforecast,
    "neuralforecast": of_neuralforecast,
    "darts": of_darts,
    "gluonts": of_gluonts,
    "sktime": of_sktime,
}


def wrapped(model: Any, world: World) -> Adapter:
    return ompb.adapters.wrap(model, context=world.context, horizon=world.horizon)


def name_of(model: Any) -> str:
    """The class of what is inside: the model of a collection, the estimator of a reduction."""
    for inside in ("models_", "models"):
        held = getattr(model, inside, None)
        if held:
            return type(next(iter(held.values() if isinstance(held, dict) else held))).__name__
    return type(model).__name__


def rate(forecaster: Adapter, query: Query, rounds: int) -> float:
    """Windows per second of CPU time, in the best of some rounds after one that is not counted."""
    forecaster.forecast(query)
    spent = []
    for _ in range(rounds):
        start = process_time()
        forecaster.forecast(query)
        spent.append(process_time() - start)
    return len(query.windows) / max(min(spent), 1e-6)


def table(world: World, many: int, rounds: int, libraries: Sequence[str]) -> list[tuple[str, ...]]:
    lines: list[tuple[str, ...]] = [HEADINGS]
    for library in libraries:
        with quiet(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fitting, which is not what is looked at here
            model = MODELS[library](world)
            forecaster = wrapped(model, world)
            rates = [rate(forecaster, world.query(windows), rounds) for windows in (many, 1)]
        lines.append((f"{library} {version(library)}", name_of(model), *(f"{found:,.0f}" for found in rates)))
        print(" | ".join(lines[-1]), flush=True)
    return lines


def ways(world: World, many: int, rounds: int) -> list[tuple[str, ...]]:
    """LightGBM in each way: how many models of one output are fitted, how long that takes, and the two rates."""
    from ompb.adapters.sklearn import wrap

    lines: list[tuple[str, ...]] = [("LightGBM", "models", "s to fit", *HEADINGS[2:])]
    for name, way in WAYS.items():
        start = process_time()
        model = of_lightgbm(world, **way)
        spent = process_time() - start
        forecaster = wrap(model, context=world.context, horizon=world.horizon, **way)
        rates = [rate(forecaster, world.query(windows), rounds) for windows in (many, 1)]
        models = len(getattr(model, "estimators_", [model]))
        lines.append((name, str(models), f"{spent:.1f}", *(f"{found:,.0f}" for found in rates)))
        print(" | ".join(lines[-1]), flush=True)
    return lines


def markdown(lines: Sequence[Sequence[str]]) -> str:
    rule = ("---", "---", *(len(lines[0]) - 2) * ("---:",))
    return "\n".join(f"| {' | '.join(line)} |" for line in (lines[0], rule, *lines[1:]))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Windows a second of wrapped models.")
    parser.add_argument("--context", type=int, default=96)
    parser.add_argument("--horizon", type=int, default=24)
    parser.add_argument("--channels", type=int, default=3)
    parser.add_argument("--rows", type=int, default=1200, help="of the source")
    parser.add_argument("--many", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--libraries", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--out", type=Path, help="a Markdown file to write")
    chosen = parser.parse_args(arguments)
    source, _ = shifted_stream("level", 0, chosen.rows, 10, chosen.channels, SEASON)
    with tempfile.TemporaryDirectory() as folder:
        world = World(source, chosen.context, chosen.horizon, Path(folder))
        tables = [table(world, chosen.many, chosen.rounds, chosen.libraries)]
        if "lightgbm" in chosen.libraries:
            tables.append(ways(world, chosen.many, chosen.rounds))
    if chosen.out is not None:
        chosen.out.write_text(page(chosen, tables))


def page(chosen: argparse.Namespace, tables: Sequence[Sequence[Sequence[str]]]) -> str:
    threads = os.environ.get("OMP_NUM_THREADS", "as many as there are cores")
    notes = (
        "Made by `.venv-adapters/bin/python benchmarks/adapters_speed.py --out results/adapters-speed.md`.",
        f"Windows of {chosen.channels} channels per second of CPU time: context {chosen.context}, horizon "
        f"{chosen.horizon}; {chosen.many} windows in one call, and one. The best of {chosen.rounds} rounds.",
        f"Small models, fitted to {chosen.rows} rows: the time is that of the calls more than of the models.",
        f"Versions: python {platform.python_version()}, ompb {version('ompb')}, torch {version('torch')}, "
        f"pandas {version('pandas')}. OMP_NUM_THREADS {threads}.",
    )
    listed = "\n".join(f"- {note}" for note in notes)
    shown = "\n\n".join(map(markdown, tables))
    return f"# Speed of wrapped models\n\n{listed}\n\n{shown}\n"


if __name__ == "__main__":
    main()
