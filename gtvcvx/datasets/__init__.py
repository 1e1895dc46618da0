"""Data: some that come with the package, stand-ins that say so, and readers of users' files.

Nothing is downloaded. Where a file is missing, the error says what to put where.
"""

from gtvcvx.datasets._counties import CountyElection, load_counties, load_county_votes
from gtvcvx.datasets._election import synthetic_election
from gtvcvx.datasets._idx import load_idx
from gtvcvx.datasets._images import LabelledImages, load_digits_8x8, load_idx_images
from gtvcvx.datasets._us_income import USIncome, USIncomePaths, load_us_income, us_income_paths

__all__ = [
    "CountyElection",
    "LabelledImages",
    "USIncome",
    "USIncomePaths",
    "load_counties",
    "load_county_votes",
    "load_digits_8x8",
    "load_idx",
    "load_idx_images",
    "load_us_income",
    "synthetic_election",
    "us_income_paths",
]


def __dir__() -> list[str]:
    return sorted(__all__)
