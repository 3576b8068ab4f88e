"""Which signal ranks the errors to come best, and where as well as the paper's, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from statistics import fmean

from ompb.paper.association import (
    CERTIFICATE,
    DISAGREEMENT,
    EXPECTED,
    INPUTS,
    SEVERITIES,
    SIGNALS,
    STATISTICS,
    Found,
)
from ompb.paper.grid import PAPERS_DATA, Spot, paper_dataset
from ompb.paper.printed import Number, diagnostics
from ompb.paper.severity import MEASURES

# The expected error is made for what is issued; the paper holds its certificate against the bare forecaster's error.
BESIDE = (
    ("The expected error", EXPECTED, "what was issued", ("mae", "mse")),
    ("The certificate", CERTIFICATE, "the bare forecaster", ("bare_mae", "bare_mse")),
)


def printed_rank(dataset: str, error: str, statistic: str = "spearman") -> Number:
    """What the paper prints for its certificate and an error."""
    return diagnostics("cert_error_corr")[paper_dataset(dataset), f"target_{error.removeprefix('bare_')}", statistic]


def best_signals(away: Mapping[Spot, Found]) -> list[str]:
    """Which signal has the largest mean rho over shifted streams, for what was issued and for the bare forecaster."""
    words = [_best(away, error, whose) for _, _, whose, (error, _) in BESIDE]
    found = " and ".join(word for word in words if word)
    return [f"Over {len(away)} shifted streams, looked at afterwards, {found}."] if found else []


def _best(away: Mapping[Spot, Found], error: str, whose: str) -> str:
    means = {name: mean for name in SIGNALS | SEVERITIES if (mean := _mean_rank(away, name, error)) is not None}
    early = [name for name, reads in (SIGNALS | SEVERITIES).items() if reads == INPUTS and name in means]
    if not means or not early:
        return ""
    first, alone = (max(names, key=means.__getitem__) for names in (means, early))
    reads = f"`{first}`, which reads inputs alone," if first == alone else f"`{first}`"
    others = "" if first == alone else f", of those that read inputs alone `{alone}` with {means[alone]:.3f}"
    return f"{reads} ranks the MAE of {whose} best (mean rho {means[first]:.3f}{others})"


def _mean_rank(away: Mapping[Spot, Found], name: str, error: str) -> float | None:
    ranks = [one[key].spearman for one in away.values() if (key := f"{name} {error}") in one]
    return fmean(ranks) if ranks else None


def certificate_or_expected(away: Mapping[Spot, Found]) -> list[str]:
    """On how many shifted streams the expected error ranks what is issued better than the certificate."""
    keys = [f"{name} mae" for name in (EXPECTED, CERTIFICATE)]
    both = [one for one in away.values() if all(key in one for key in keys)]
    better = sum(one[keys[0]].spearman > one[keys[1]].spearman for one in both)
    where = f"On {better} of {len(both)} shifted streams"
    return [f"{where} the expected error ranks the MAE better than the certificate."] if both else []


def beside_papers(away: Mapping[Spot, Found]) -> list[str]:
    """On which of the paper's data, and how far ahead, our rho is at least the printed one, and where it is not."""
    sentences = []
    for name, signal, whose, errors in BESIDE:
        words = [f"by {error[-3:].upper()} {found}" for error in errors if (found := _reached(away, signal, error))]
        if words:
            sentences.append(f"{name} reaches the paper's rho with the error of {whose} {'; '.join(words)}.")
    return sentences


def _reached(away: Mapping[Spot, Found], signal: str, error: str) -> str:
    """By data set, with what the paper prints there."""
    horizons: dict[str, dict[bool, list[int]]] = {}
    for place, one in away.items():
        if place.dataset in PAPERS_DATA and (key := f"{signal} {error}") in one:
            reached = one[key].spearman >= float(printed_rank(place.dataset, error))
            horizons.setdefault(place.dataset, {True: [], False: []})[reached].append(place.horizon)
    return " and ".join(
        f"on {dataset} ({float(printed_rank(dataset, error)):.3f}) {_at(found[True], found[False])}"
        for dataset, found in horizons.items()
    )


def _at(reached: Sequence[int], missed: Sequence[int]) -> str:
    if not reached:
        return "nowhere"
    words = [" and ".join(map(str, horizons)) for horizons in (reached, missed)]
    return f"at H = {words[0]}" + (f" but not at {words[1]}" if missed else "")


def signs(away: Mapping[Spot, Found]) -> list[str]:
    """How often the disagreement goes with the severity in the other direction than the paper's."""
    printed, counts = diagnostics("dis_shift_corr"), dict[str, list[bool]]()
    for place, one in away.items():
        for name, statistic in product(MEASURES, STATISTICS):
            if place.dataset in PAPERS_DATA and (key := f"{DISAGREEMENT} {name}") in one:
                theirs = float(printed[paper_dataset(place.dataset), name, statistic])
                counts.setdefault(place.dataset, []).append(getattr(one[key], statistic) * theirs < 0)
    named = " and ".join(f"{sum(others)} of {len(others)} correlations on {name}" for name, others in counts.items())
    return [f"Disagreement and severity go together with the other sign than the paper's in {named}."] if named else []
