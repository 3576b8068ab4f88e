import json
import re
from dataclasses import replace
from datetime import date
from html import unescape
from pathlib import Path

import numpy as np
from small_study import renamed, small_study

from ompb import Alert, Episode
from ompb.reports import report
from ompb.reports.figures import warning_figure
from ompb.reports.html import html_report
from ompb.reports.summary import share_above_sentence, summary, three_decimals


def test_page_holds_tables_figures_and_facts() -> None:
    study = small_study()
    page = html_report(study)
    assert page.count("<svg") == 4 + bool(study.run.warnings)
    assert "<h1>A &lt;small&gt; run</h1>" in page
    for name, scale in zip(study.run.names, study.run.scale, strict=True):
        assert f"{scale:.4g} for {name}" in page
    for lines in study.scores().values():
        for line in lines:
            cells = (line.name, three_decimals(line.mae), three_decimals(line.mse))
            assert "".join(f"<td>{cell}</td>" for cell in cells) in page
    for fact in ("<td>seed</td><td>1</td>", "24 rows", "6 rows", "12 rows", f"on {date.today().isoformat()}"):
        assert fact in page


def test_page_says_what_the_certificate_says_and_what_not() -> None:
    study = small_study()
    page, certificate = unescape(html_report(study)), study.run.last_certificate
    assert certificate is not None
    assert share_above_sentence(study) in page
    assert certificate.confidence in page
    assert all(assumption in page for assumption in certificate.assumptions)
    assert f"The certificate of the last forecast is {certificate.value:.3f}" in page
    assert "the forecaster never saw" in page
    assert "rows before the last row" in page


def test_in_sample_certificates_are_marked() -> None:
    study = small_study()
    assert study.run.last_certificate is not None
    in_sample = replace(study.run, last_certificate=replace(study.run.last_certificate, in_sample=True))
    page = html_report(replace(study, run=in_sample))
    assert "source windows that the forecaster was trained on" in page
    assert "in-sample, hence optimistic" in page


def test_without_certificates_there_are_three_figures_and_a_sentence() -> None:
    page = html_report(small_study(certificate=False))
    assert page.count("<svg") == 3 + bool(small_study(certificate=False).run.warnings)
    assert "made without certificates" in page
    assert "changed options</td><td>certificate = False</td>" in page


def alerts() -> tuple[Episode, ...]:
    start = np.datetime64("2024-01-03T00", "us")
    level = Alert("level", 48, 60, start, ("channel 0",), 4_321.0)
    errors = Alert("errors", 50, 55, start, ("channel 0", "channel 1"), 1e6)
    return Episode(48, 60, (errors, level)), Episode(120, 130, (Alert("inputs", 120, 130, start, ("channel 1",), 2e3),))


def test_episodes_of_warnings_are_listed_drawn_and_told() -> None:
    study = small_study()
    warned = replace(study, run=replace(study.run, warnings=alerts()))
    page = html_report(warned)
    assert page.count("<svg") == 5
    cells = ("2024-01-03T00:00:00", "2024-01-03T12:00:00", "errors, level", "over a million", "channel 0, channel 1")
    assert "".join(f"<td>{cell}</td>" for cell in cells) in page
    (panel,) = warning_figure(warned).axes
    drawn = {str(line.get_label()): line for line in panel.lines if not str(line.get_label()).startswith("_")}
    assert set(drawn) == {"inputs", "level", "errors"}
    assert list(np.asarray(drawn["level"].get_ydata())) == [4_321.0]
    assert warned.warnings_told() == ["2 episodes of warnings:", *map(str, alerts())]
    tree = summary(warned)
    assert tree["warnings"][0]["alerts"][1]["since_time"] == "2024-01-03T00:00:00"
    assert json.loads(json.dumps(tree)) == tree


def test_a_calm_run_says_so() -> None:
    study = small_study()
    calm = replace(study, run=replace(study.run, warnings=()))
    assert "There was none in this run." in html_report(calm)
    assert calm.warnings_told() == ["No warnings."]


def test_page_needs_no_network_and_its_identifiers_are_unique() -> None:
    page = html_report(small_study())
    assert not re.search(r"""(href|src)\s*=\s*["'](?!#)|url\((?!#)|@import|<script|<link""", page)
    identifiers = re.findall(r'\sid="([^"]*)"', page)
    assert len(identifiers) == len(set(identifiers))
    assert set(re.findall(r'(?:href="#|url\(#)([^")]*)', page)) <= set(identifiers)


def test_foreign_letters_and_dollars_are_drawn_without_a_warning(tmp_path: Path) -> None:
    study = small_study()
    named = replace(study, run=renamed(study.run, ("電力", "$a$ <b>")))
    path = tmp_path / "new" / "report.html"
    report(named, path)
    text = path.read_text(encoding="utf-8")
    assert "電力" in text
    assert "$a$ &lt;b&gt;" in text


def test_on_a_narrow_page_long_names_are_broken_and_pictures_scroll() -> None:
    page = html_report(small_study())
    assert "overflow-wrap: break-word" in page
    assert page.count('<figure><div class="scroll">') == page.count("<figure>")
    assert "figure .scroll svg { min-width:" in page
