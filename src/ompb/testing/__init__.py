"""Tests that others can run on what they add: a forecaster or adapter, and a method of the benchmark.

They are for use in a test, like those of `numpy.testing`: silent if all is well, else an error that says what is not.
"""

from ompb.testing.forecaster import check_forecaster
from ompb.testing.method import MethodWorld, check_method

__all__ = ["MethodWorld", "check_forecaster", "check_method"]
