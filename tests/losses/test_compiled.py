"""The cache of compiled functions does not outlive the sources of what they call."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from gtvcvx.compiled import _cache as _compiled


def test_all_files_with_compiled_functions_count():
    folder = Path(_compiled.__file__).parents[1]
    using = {path for path in folder.rglob("*.py") if "@compiled\n" in path.read_text()}
    assert using
    assert using <= set(_compiled.SOURCES)


def test_the_fingerprint_changes_with_any_source(tmp_path, monkeypatch):
    before = _compiled.fingerprint()
    assert before == _compiled.FINGERPRINT
    for k, path in enumerate(_compiled.SOURCES):
        changed = tmp_path / path.name
        changed.write_text(path.read_text() + "# changed\n")
        others = [*_compiled.SOURCES[:k], changed, *_compiled.SOURCES[k + 1 :]]
        with monkeypatch.context() as context:
            context.setattr(_compiled, "SOURCES", others)
            assert _compiled.fingerprint() != before


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module of its own, whose cache is beside it."""
    source = tmp_path / "kernels_of_a_test.py"
    source.write_text(
        "def double(x):\n    return 2.0 * x\n\n\ndef inverse(x):\n    return 1.0 / x\n"
    )
    spec = importlib.util.spec_from_file_location(source.stem, source)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, source.stem, module)
    spec.loader.exec_module(module)
    return module


def test_compiled_code_is_kept_by_fingerprint(module, monkeypatch):
    """Another fingerprint finds nothing; the same one finds what was kept."""

    def hits(mark):
        monkeypatch.setattr(_compiled, "FINGERPRINT", mark)
        function = _compiled.compiled(module.double)
        assert function(3.0) == 6.0
        return sum(function.stats.cache_hits.values())

    assert [hits("a"), hits("a"), hits("b"), hits("b"), hits("a")] == [0, 1, 0, 1, 1]


def test_division_by_zero_is_infinite(module):
    assert _compiled.compiled(module.inverse)(0.0) == np.inf
