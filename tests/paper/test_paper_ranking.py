"""Sentences on correlations, from a few that are known by heart."""

from ompb.paper.association import Association, Found
from ompb.paper.grid import Spot
from ompb.paper.ranking import beside_papers, best_signals, certificate_or_expected, printed_rank, signs


def ranked(**ranks: float) -> Found:
    """Spearman's rho, and Pearson's r of the other sign, by signal and error: ``novelty__mae=0.2``."""
    return {name.replace("__", " "): Association(-rank, rank, 30) for name, rank in ranks.items()}


def at(dataset: str, horizon: int) -> Spot:
    return Spot(dataset, "tcn", horizon, "ood")


def test_the_best_signal_is_that_of_the_largest_mean() -> None:
    """The expected error has 0.6 and 0, the novelty 0.4 and 0.3: 0.35 is more than 0.3."""
    away = {
        at("etth", 24): ranked(expected_error__mae=0.6, novelty__mae=0.4, novelty__bare_mae=0.1, value__bare_mae=0.5),
        at("etth", 96): ranked(expected_error__mae=0.0, novelty__mae=0.3),
    }
    assert best_signals(away) == [
        "Over 2 shifted streams, looked at afterwards, `novelty`, which reads inputs alone, ranks the MAE of what was "
        "issued best (mean rho 0.350) and `value` ranks the MAE of the bare forecaster best (mean rho 0.500, of those "
        "that read inputs alone `novelty` with 0.100)."
    ]
    assert best_signals({}) == best_signals({at("etth", 24): ranked(value__mae=0.3)}) == []


def test_what_the_paper_prints_is_reached_where_ours_is_at_least_as_large() -> None:
    """The paper has 0.278 and 0.276 with the MAE, 0.383 with the MSE on ETTh."""
    assert [printed_rank(data, "bare_mae").value for data in ("etth", "ili")] == ["0.278", "0.276"]
    away = {
        at("etth", 24): ranked(expected_error__mae=0.278, expected_error__mse=0.382),
        at("etth", 96): ranked(expected_error__mae=0.3, expected_error__mse=0.1),
        at("ili", 24): ranked(expected_error__mae=0.2),
        at("ili", 48): ranked(expected_error__mae=0.4),
        at("weather-stand-in", 24): ranked(expected_error__mae=0.9),  # not the paper's data
    }
    assert beside_papers(away) == [
        "The expected error reaches the paper's rho with the error of what was issued by MAE on etth (0.278) at H = 24 "
        "and 96 and on ili (0.276) at H = 48 but not at 24; by MSE on etth (0.383) nowhere."
    ]
    assert beside_papers({}) == []


def test_signs_are_those_of_both_statistics() -> None:
    """The paper's are all above zero on ETTh; on ILI its MMD is below it by Pearson."""
    away = {
        at("etth", 24): ranked(disagreement__ks=0.1, disagreement__js=-0.1),
        at("ili", 24): ranked(disagreement__rbf_mmd=0.1),
    }
    assert signs(away) == [
        "Disagreement and severity go together with the other sign than the paper's in 2 of 4 correlations on etth and "
        "0 of 2 correlations on ili."
    ]
    assert signs({}) == []


def test_the_certificate_and_the_expected_error_meet_where_both_are() -> None:
    away = {
        at("etth", 24): ranked(expected_error__mae=0.3, value__mae=0.2),
        at("etth", 96): ranked(expected_error__mae=0.3, value__mae=0.4),
        at("ili", 24): ranked(value__mae=0.4),
    }
    assert certificate_or_expected(away) == [
        "On 1 of 2 shifted streams the expected error ranks the MAE better than the certificate."
    ]
    assert certificate_or_expected({}) == []
