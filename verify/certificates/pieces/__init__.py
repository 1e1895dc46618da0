"""Certificates of problems in pieces: no process holds the whole, and no file either but the one.

A problem larger than one machine is in pieces, several processes have some each, and all of them
call `certify_pieces`. What it writes is what `verify.certify` writes of the whole (`.gtvc`,
SCHEMA.md, section 8), and the kernel judges it like any other file.
"""

from verify.certificates.pieces._entry import certify_pieces
from verify.certificates.pieces._float_point import NoPieces
from verify.certificates.pieces._piece import Piece, Team, Whole

__all__ = ["NoPieces", "Piece", "Team", "Whole", "certify_pieces"]
