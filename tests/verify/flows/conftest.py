"""Shares the graphs of this folder with its test files, under their own name."""

import importlib.util
import sys
from pathlib import Path

_NAME = "_flow_graphs"  # ``from _flow_graphs import instance`` in the files here
_spec = importlib.util.spec_from_file_location(_NAME, Path(__file__).with_name(f"{_NAME}.py"))
assert _spec is not None
assert _spec.loader is not None
_module = importlib.util.module_from_spec(_spec)
sys.modules[_NAME] = _module
_spec.loader.exec_module(_module)
