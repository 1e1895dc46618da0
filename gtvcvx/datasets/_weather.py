"""Weather stations: a user's table of them, and a synthetic stand-in."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.datasets._user_files import number, table_rows, user_file
from verify._display import fields_text

_TABLE = (
    "a CSV file with a line for each station and day and the columns station, latitude, longitude, "
    "day, minimum, maximum (degrees Celsius), for example from the open data of the Finnish "
    "Meteorological Institute"
)
_COLUMNS = ("station", "latitude", "longitude", "day", "minimum", "maximum")
# A box about as large as Finland, in degrees.
_SOUTH, _NORTH, _WEST, _EAST = 59.8, 70.0, 20.5, 31.0


@dataclass(frozen=True, eq=False)
class WeatherStations:
    """Daily temperatures of stations.

    Attributes
    ----------
    stations : list of str, length n
        Names.
    places : ndarray of float64, shape (n, 2)
        Latitude and longitude in degrees.
    days : list of str, length t
        In the order of the table.
    minimum, maximum : ndarray of float64, shape (n, t)
        Lowest and highest temperature of a day, in degrees Celsius.
    source : str
        Where the figures come from; begins with "synthetic" for those that are made up.
    """

    stations: list[str]
    places: FloatArray
    days: list[str]
    minimum: FloatArray
    maximum: FloatArray
    source: str

    __repr__ = fields_text


def load_weather_stations(path: str | os.PathLike[str]) -> WeatherStations:
    """Read a user's table of stations and days.

    Parameters
    ----------
    path : path-like
        CSV with the columns ``station``, ``latitude``, ``longitude``, ``day``, ``minimum`` and
        ``maximum``.

    Returns
    -------
    WeatherStations
        The days that every station has; stations in the order of the table.

    Raises
    ------
    FileNotFoundError
        It is not there; the message says what to put where.
    ValueError
        A column is missing, a cell is no number, a day of a station comes twice, a station moves,
        or no day is one of all stations.
    """
    found = user_file(path, _TABLE)
    places: dict[str, tuple[float, float]] = {}
    values: dict[tuple[str, str], tuple[float, float]] = {}
    days: dict[str, int] = {}
    for line, row in table_rows(found):
        missing = [name for name in _COLUMNS if name not in row]
        if missing:
            raise ValueError(f"{found}: columns are missing: {', '.join(missing)}")
        station, day = row["station"], row["day"]
        lat, lon, low, high = (
            number(row[name], found, line, name) for name in (*_COLUMNS[1:3], *_COLUMNS[4:])
        )
        if places.setdefault(station, (lat, lon)) != (lat, lon):
            raise ValueError(f"{found}, line {line}: station {station!r} has moved")
        if (station, day) in values:
            raise ValueError(f"{found}, line {line}: {station!r} has {day!r} twice")
        values[station, day] = low, high
        days[day] = days.get(day, 0) + 1
    complete = [day for day, count in days.items() if count == len(places)]
    if not complete:
        raise ValueError(f"{found}: no day has a line of every station")
    table = np.array([[values[station, day] for day in complete] for station in places])
    return WeatherStations(
        stations=list(places),
        places=np.array(list(places.values())),
        days=complete,
        minimum=table[..., 0],
        maximum=table[..., 1],
        source=f"the user's {Path(found).name}",
    )


def synthetic_weather_stations(
    seed: int = 0, n_stations: int = 120, n_days: int = 60
) -> WeatherStations:
    """Make up stations on a map like that of Finland, with a coast behind which weather differs.

    Parameters
    ----------
    seed : int
        Of the random numbers.
    n_stations, n_days : int
        How many.

    Returns
    -------
    WeatherStations
        ``source`` says that they are synthetic.

    Notes
    -----
    The maximum of a day is a line in the minimum. Its slope is 0.5 near the western coast (as the
    sea makes days even) and 0.9 inland; its constant falls from 9 to 5 degrees towards the north,
    and is 3 degrees less near the coast. Deviations of 1.5 degrees are independent, and the
    minimum is a wave of the days, a gradient towards the north, and noise.
    """
    rng = np.random.default_rng([seed, n_stations, n_days])
    places = rng.uniform([_SOUTH, _WEST], [_NORTH, _EAST], (n_stations, 2))
    north = (places[:, 0] - _SOUTH) / (_NORTH - _SOUTH)
    coast = places[:, 1] < _WEST + 4.0 - 2.0 * north
    wave = 4.0 * np.sin(2.0 * np.pi * np.arange(n_days) / 23.0) + rng.normal(0.0, 2.0, n_days)
    minimum = wave - 6.0 * north[:, None] + rng.normal(0.0, 1.5, (n_stations, n_days))
    slope = np.where(coast, 0.5, 0.9)
    constant = 9.0 - 4.0 * north - 3.0 * coast
    noise = rng.normal(0.0, 1.5, (n_stations, n_days))
    return WeatherStations(
        stations=[f"station {k + 1}" for k in range(n_stations)],
        places=places,
        days=[str(day + 1) for day in range(n_days)],
        minimum=minimum,
        maximum=constant[:, None] + slope[:, None] * minimum + noise,
        source=f"synthetic stand-in for weather stations, seed {seed}",
    )
