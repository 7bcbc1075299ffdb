"""The repository that the tests belong to."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def root_folder() -> Path:
    return Path(__file__).parents[2]
