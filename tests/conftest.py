"""Fixtures shared by all tests."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

REPOSITORY = Path(__file__).parents[1]

# Property tests search anew in every run on a developer's machine; where CI is set they take the same examples each
# time, so that a change is judged by what it changed.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder with the public data sets: OMPB_DATA, by default ../shared/data beside the repository."""
    folder = REPOSITORY / os.environ.get("OMPB_DATA", "../shared/data")
    if not folder.is_dir():
        pytest.skip(f"public data not found in {folder}; set OMPB_DATA to its folder")
    return folder
