"""What the library tells the standard module `logging`; nobody hears it who does not ask.

All loggers are children of ``gtvcvx``, one a room: ``gtvcvx.solvers``, ``gtvcvx.path``, and so on.
INFO is what a run does on the whole: which method, when another takes over, how it ended. DEBUG is
every step of it. WARNING is what has gone wrong beside the warnings of Python. Levels do not depend
on ``verbose``, which is about the line of progress on a terminal.
"""

from __future__ import annotations

import logging

_ROOT = logging.getLogger("gtvcvx")
# Without a handler of any kind Python would print warnings to standard error.
_ROOT.addHandler(logging.NullHandler())


def room_logger(room: str) -> logging.Logger:
    """Return the logger of a room, such as "solvers"."""
    return _ROOT.getChild(room)
