"""Pages, figures and files that tell what a study found."""

from ompb.floor.extras import extra

with extra("report", needed_by="ompb.reports"):
    import matplotlib as _matplotlib  # noqa: F401

from ompb.reports.files import report

__all__ = ["report"]
