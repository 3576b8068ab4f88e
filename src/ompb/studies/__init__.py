"""Follow a table: learn from its first part, step through the rest, and score what was said, phase by phase."""

from ompb.backtest import BARE, OMPB
from ompb.rows.phases import Phase
from ompb.studies.demo import demo_study
from ompb.studies.follow import study
from ompb.studies.many import study_each
from ompb.studies.result import HiddenCells, Study
from ompb.studies.scores import PhaseScores
from ompb.studies.studies import SeriesScores, Studies

__all__ = [
    "BARE",
    "OMPB",
    "HiddenCells",
    "Phase",
    "PhaseScores",
    "SeriesScores",
    "Studies",
    "Study",
    "demo_study",
    "study",
    "study_each",
]
