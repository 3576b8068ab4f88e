"""What the words of the tables mean, by subject; closed until a reader asks."""

from __future__ import annotations

from collections.abc import Mapping

from ompb.bench.backbones import UNSEEN_SHARE
from ompb.paper.page.words import inline

WORDS: Mapping[str, Mapping[str, str]] = {
    "What is run": {
        "source, stream": "The rows that a forecaster is trained on, and those that then arrive one by one.",
        "cell": "One run: one method around one backbone on one split of a data set, at one horizon, under one "
        "protocol, with one seed. Columns headed *cells* count them.",
        "place": "A data set, backbone, horizon and split. Its cells differ in method, protocol and seed.",
        "horizon, H": "How many rows a forecast reaches ahead. Each of them is a *lead*, and the row at which it is "
        "issued its *origin*.",
        "seeds": "A seed decides every random number of a run, those of the backbone's training first of all. The "
        "column *seeds* counts them; where a note says that means are over the seeds in the last column, it names "
        "them, from 0 on.",
        "n": "How many forecasts were scored.",
        "honest, one-step": "The protocols, as told above: rows that have come, or a leak of those to come.",
    },
    "Data": {
        "id": "The stream from the place of the source, later in time: the last fifth of ETTh1, of the weeks of "
        "influenza in 2009 to 2020, and the last tenth of Miami's weather.",
        "ood": "A stream from elsewhere or after a break: ETTh2, and the weeks of influenza from 2021 on. As many rows "
        "are judged as `id` has.",
        "ood_near, ood_far": "The weather of Atlanta and of New York, with a source in Miami.",
        "etth, ili": "Hourly load and oil temperature of two transformers; weekly visits to doctors for influenza-like "
        "illness in the United States.",
        "weather-stand-in": "Hourly weather of the paper's three cities, of other years and from other sensors than "
        "WEATHER-5K, which the paper has: its numbers have no ratio to the paper's.",
    },
    "Backbones": {
        "backbone": "The forecaster that is trained on the source and then frozen. *Bare*: without any correction.",
        "tcn": "Dilated causal convolutions, read at the newest row.",
        "autoformer": "The paper's simplified Autoformer: decomposition of the series, and auto-correlation in place "
        "of attention.",
        "gpt4ts": "Patches of one channel, read by the first blocks of GPT-2, most of which stays frozen.",
        "gpt2-partial": "In brackets behind `gpt4ts`: the two blocks have GPT-2's weights but for their MLPs, whose "
        "matrices are drawn at random. The paper's has all.",
        "@5, @val, @unseen": "Behind a backbone: trained for 5 epochs (or whatever number there is), for as many as a "
        f"held-out tenth of the source asks for, or on the source without its last {UNSEEN_SHARE:.0%}, which only "
        "certificates read.",
    },
    "Methods": {
        "original": "The bare backbone.",
        "profile, last": "The mean of the newest whole seasons of the window, and its last row, as forecasts.",
        "bias, copy": "The bare forecast plus a running mean of its errors, lead by lead, and plus the newest residual "
        "that is complete.",
        "ompb, ompb-paper": "This package, and the paper's method as published.",
        "+history": "The same method, to which the source is what came before the stream: where it goes on from there.",
        "+tuned": "A published method at the rate, of a few around the published one, that did best in a rehearsal on "
        "the source.",
        "retrain, retrain-warm": "The backbone trained again every 500 rows, or every season where that is longer than "
        "a window, on all that is known: from fresh weights, and from the present ones. `retrain+ompb` has `ompb` "
        "around it.",
        "name[option=value]": "A method with an option that is not its own.",
    },
    "Certificate": {
        "certificate, value": "What `ompb` says before any outcome of how wrong a forecast may be: source risk, plus "
        "Gamma, plus half of what the disagreement has risen. In units of a loss from 0 to 1; at 1 it says nothing.",
        "loss, proxy risk": "min(1, (e / tau_y)^2), e the root mean square error of one forecast. *Realised*: what it "
        "then was.",
        "tau_y": "The scale of that loss: twice the error that nine in ten forecasts stay below on the source "
        "that is learned from. Hence 1/4 is the worst that was common there.",
        "source risk": "The mean loss that what is issued now would have on windows of the source that nothing was "
        "learned from.",
        "Gamma": "The price of having seen only so many of those windows, at a confidence of 95 %.",
        "betting, freedman, subgamma, iid": "Four ways to that price: bets on the losses, whatever they depend on; "
        "Freedman's inequality with an estimated variance; the same with the largest standard deviation as its scale, "
        "as in the paper; and that of independent windows, which these need not be.",
        "disagreement": "How far forecasts drawn from the posterior would lie apart, from 0 to 1; *rise*: by how much "
        "more on the newest windows than on the source's. Its scale is tau_d.",
        "posterior": "What `ompb` believes: its members, such as the bare forecast, the profile and heads that learn, "
        "each with a weight.",
    },
    "Other signals": {
        "novelty": "How far the bare forecast is off what the memory of the series makes of the same rows; 1 is a "
        "distance that one in a hundred windows of the source exceeds.",
        "gate": "The weight that is not the bare forecast's. At 0 the forecast is the backbone's own, bit for bit.",
        "expected error": "The mean absolute error that `ompb` expects of a forecast it issues.",
        "warnings": "How many signals are beyond what a calm stream shows about once in 1,500 rows.",
        "KS, Wasserstein, JS, MMD": "Distances of the newest rows from the source, called severity: the largest gap of "
        "the distribution functions, the area between them, the Jensen-Shannon divergence of histograms (at most "
        "ln 2), means over channels; and the maximum mean discrepancy of all channels together, under a Gaussian "
        "kernel.",
    },
    "Scores": {
        "MAE, MSE": "Mean absolute and mean squared error, over forecasts, leads and channels.",
        "coverage, width": "The share of outcomes inside the 80 % or 95 % intervals, and their mean length.",
        "CRPS": "Continuous ranked probability score of the Gaussian law with the forecast's mean and standard "
        "deviation: for a law without spread it is the MAE.",
        "NLL": "Negative log-likelihood: minus the logarithm of that law's density at the outcome, in the mean.",
        "ECE": "Expected calibration error: the mean distance of coverage from promise over ten levels.",
        "Winkler": "The width of an interval, and 2 / (1 - level) for each unit that the outcome lies outside. An "
        "honest interval that is narrow scores low.",
        "r, rho": "Pearson's and Spearman's correlation, the latter of ranks.",
    },
}


def _group(subject: str, words: Mapping[str, str]) -> str:
    items = "".join(f"<dt>{inline(word)}</dt><dd>{inline(meaning)}</dd>\n" for word, meaning in words.items())
    return f"<h3>{subject}</h3>\n<dl>{items}</dl>"


GLOSSARY = f"""<details class="glossary"><summary>Cells, places, backbones, methods, certificates and scores:
the words of the tables</summary>
{"".join(_group(subject, words) for subject, words in WORDS.items())}
</details>"""
