"""Data: some that come with the package, stand-ins that say so, and readers of users' files.

Nothing is downloaded. Where a file is missing, the error says what to put where.
"""

from gtvcvx.datasets._counties import CountyElection, load_counties, load_county_votes
from gtvcvx.datasets._election import synthetic_election
from gtvcvx.datasets._idx import load_idx
from gtvcvx.datasets._images import LabelledImages, load_digits_8x8, load_idx_images
from gtvcvx.datasets._us_income import USIncome, USIncomePaths, load_us_income, us_income_paths
from gtvcvx.datasets._weather import (
    WeatherStations,
    load_weather_stations,
    synthetic_weather_stations,
)

__all__ = [
    "CountyElection",
    "LabelledImages",
    "USIncome",
    "USIncomePaths",
    "WeatherStations",
    "load_counties",
    "load_county_votes",
    "load_digits_8x8",
    "load_idx",
    "load_idx_images",
    "load_us_income",
    "load_weather_stations",
    "synthetic_election",
    "synthetic_weather_stations",
    "us_income_paths",
]


def __dir__() -> list[str]:
    return sorted(__all__)
