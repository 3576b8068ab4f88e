"""Fixtures shared by all tests."""

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder with the public data sets: OMPB_DATA, by default ../shared/data beside the repository."""
    folder = REPOSITORY / os.environ.get("OMPB_DATA", "../shared/data")
    if not folder.is_dir():
        pytest.skip(f"public data not found in {folder}; set OMPB_DATA to its folder")
    return folder
