"""Shares instances and documents of this folder with its test files, under their own names."""

import importlib.util
import sys
from pathlib import Path


def _share(name: str) -> None:
    """Let the files here say ``from _plain_instances import instance``."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


_share("_plain_instances")
_share("_zip_files")
