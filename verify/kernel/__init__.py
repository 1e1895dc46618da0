"""The exact checker: trusted, small, and on the Python standard library alone.

`documents` opens the door, `checker` decides on certificates and `partitions` on documents about
partitions; numbers, data, losses, matrices and constants are what both are made of.
"""

from verify.kernel.documents import check
from verify.kernel.result import Result

# That of the distribution: whoever has the checker alone can say which one it is.
__version__ = "0.1.0"

__all__ = ["Result", "check"]
