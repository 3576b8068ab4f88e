"""Pictures of runs and forecasts, for notebooks and reports."""

from ompb.floor.extras import extra

with extra("report", needed_by="ompb.plots"):
    import matplotlib as _matplotlib  # noqa: F401
