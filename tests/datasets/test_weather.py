"""Weather stations: a user's table, and the synthetic stand-in."""

import numpy as np
import pytest

from gtvcvx.datasets import load_weather_stations, synthetic_weather_stations

TABLE = """station,latitude,longitude,day,minimum,maximum
Hanko,59.8,22.9,2023-01-01,-1.5,3
Hanko,59.8,22.9,2023-01-02,0,2
Kevo,69.8,27.0,2023-01-01,-20,-12.5
Kevo,69.8,27.0,2023-01-03,-21,-9
"""


@pytest.fixture
def path(tmp_path):
    (tmp_path / "stations.csv").write_text(TABLE)
    return tmp_path / "stations.csv"


def test_days_of_all_stations_are_read(path):
    found = load_weather_stations(path)
    assert (found.stations, found.days) == (["Hanko", "Kevo"], ["2023-01-01"])
    np.testing.assert_array_equal(found.places, [[59.8, 22.9], [69.8, 27.0]])
    np.testing.assert_array_equal(found.minimum, [[-1.5], [-20]])
    np.testing.assert_array_equal(found.maximum, [[3], [-12.5]])
    assert found.source == "the user's stations.csv"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("day,min", "date,min", "columns are missing: day"),
        ("-1.5", "cold", r"stations\.csv, line 2: column 'minimum': a number is expected"),
        ("59.8,22.9,2023-01-02", "60,22.9,2023-01-02", "line 3: station 'Hanko' has moved"),
        ("2023-01-02", "2023-01-01", "line 3: 'Hanko' has '2023-01-01' twice"),
        ("Kevo,69.8,27.0,2023-01-01", "Kevo,69.8,27.0,2023-01-09", "no day has a line of every"),
    ],
)
def test_tables_with_faults_are_refused_with_the_place(path, old, new, message):
    path.write_text(TABLE.replace(old, new, 1))
    with pytest.raises(ValueError, match=message):
        load_weather_stations(path)


def test_a_missing_table_says_what_to_put_there(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"put there a CSV file with a line for each station"
    ):
        load_weather_stations(tmp_path / "stations.csv")


def test_the_stand_in_says_synthetic_and_has_a_coast():
    data = synthetic_weather_stations(0, 300, 200)
    assert data.source.startswith("synthetic")
    assert data.places.shape == (300, 2)
    assert data.maximum.shape == (300, 200)
    low, high = data.minimum, data.maximum
    centred = low - low.mean(axis=1, keepdims=True)
    slopes = np.sum(centred * high, axis=1) / np.sum(centred**2, axis=1)
    west = data.places[:, 1] < 22.0
    east = data.places[:, 1] > 25.0
    assert np.abs(slopes[west] - 0.5).max() < 0.15
    assert np.abs(slopes[east] - 0.9).max() < 0.15
    np.testing.assert_array_equal(synthetic_weather_stations(0, 300, 200).maximum, high)
