"""The modules of tests/benchmarks, for the files that test them."""

import importlib
from pathlib import Path

import pytest

FOLDER = Path(__file__).with_name("benchmarks")


@pytest.fixture(scope="module", autouse=True)
def siblings():
    """Make the modules of the folder importable, as ``python tests/benchmarks`` does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        yield


def module(name):
    return importlib.import_module(name)
