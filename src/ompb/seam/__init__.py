"""The seam to a forecaster: what it is asked, of which series, and the answers to all windows of a table."""
