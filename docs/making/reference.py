"""The pages of the API reference: every public name has its place on one of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pkgutil import iter_modules

import ompb

# What `import ompb` brings, by topic, as far as it is there; a name that is not here comes last on the first page.
TOPICS = {
    "The two stages": ("Calibrator", "Stream", "Settings"),
    "What a stream hands out": ("Forecast", "Certificate", "TailRisk", "RealisedRisk", "Alert"),
    "Many series": ("calibrate", "Fleet", "FleetForecast"),
    "Forecasters": ("Forecaster", "Query", "Ridge", "SeasonalProfile", "Recorded", "check", "Checkup"),
    "Runs over a table": ("backtest", "Run", "Score", "Breakdown", "Episode", "diagnose", "Diagnosis"),
}
# Those that need more than the core; they are imported when asked for.
LAZY = {
    "study": "ompb.studies.follow.study",
    "report": "ompb.reports.files.report",
    "Study": "ompb.studies.result.Study",
}
# Other pages: their titles, and the modules on them, as far as there are any.
PAGES = {
    "errors": ("Errors", ("ompb.errors",)),
    "adapters": ("Adapters", ("ompb.adapters", "ompb.adapters.*", "ompb.testing")),
    "fleet": ("Fleets", ("ompb.fleet.fleet", "ompb.fleet.forecast", "ompb.ray")),
    "estimator": ("Estimator", ("ompb.estimator",)),
    "tables": ("Tables", ("ompb.tables",)),
    "metrics": (
        "Metrics",
        tuple(f"ompb.metrics.{name}" for name in ("point", "probabilistic", "score", "breakdown", "shift")),
    ),
    "torch": ("Networks", ("ompb.forecasters.torch", "ompb.gradient")),
    "bench": (
        "Benchmark",
        (
            "ompb.bench.contract",
            "ompb.bench.methods",
            "ompb.bench.backbones",
            "ompb.bench.protocols",
            "ompb.bench.runner",
        ),
    ),
    "extending": (
        "Parts to extend",
        ("ompb.core.members.contract", "ompb.core.certificate.kinds", "ompb.core.intervals", "ompb.floor.shapes"),
    ),
}


def pages() -> Iterator[tuple[str, str, str]]:
    """Of each page: its name, title and Markdown."""
    yield "ompb", "ompb", _top()
    for name, (title, modules) in PAGES.items():
        there = modules_of(modules)
        if there:
            yield name, title, f"# {title}\n\n" + "\n".join(f"::: {module}\n" for module in there)


def public_names() -> list[str]:
    """All that `ompb` itself offers, with what it imports when asked for."""
    return [*ompb.__all__, *LAZY]


def _top() -> str:
    topics = {topic: [name for name in names if name in ompb.__all__] for topic, names in TOPICS.items()}
    placed = {name for names in topics.values() for name in names}
    topics |= {"Studies and reports": list(LAZY), "More": [name for name in ompb.__all__ if name not in placed]}
    sections = [f"## {topic}\n\n" + "\n".join(map(_entry, names)) for topic, names in topics.items() if names]
    return "# ompb\n\nAll that `import ompb` brings.\n\n" + "\n".join(sections)


def path_of(name: str) -> str:
    """Where a public name is told of."""
    return LAZY.get(name, f"ompb.{name}")


def _entry(name: str) -> str:
    return f"::: {path_of(name)}\n    options:\n      heading_level: 3\n"


def modules_of(patterns: Iterable[str]) -> list[str]:
    """The modules that there are: of a pattern that ends in ``.*``, all in that package."""
    found: list[str] = []
    for pattern in patterns:
        package = pattern.removesuffix(".*")
        spec = _spec(package)
        if spec is not None and package != pattern:
            inner = sorted(module.name for module in iter_modules(spec.submodule_search_locations))
            found += [f"{package}.{name}" for name in inner if not name.startswith("_")]
        elif spec is not None:
            found.append(pattern)
    return found


def _spec(module: str) -> ModuleSpec | None:
    try:
        return find_spec(module)
    except ModuleNotFoundError:  # of the package it is in
        return None
