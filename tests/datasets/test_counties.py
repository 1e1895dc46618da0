"""Counties from users' files, and the synthetic stand-in for them."""

import numpy as np
import pytest

from gtvcvx.datasets import load_counties, load_county_votes, synthetic_election

FACTS = """fips,area_name,state_abbreviation,PST045214,SEX255214
0,United States,,318857056,50.8
1000,Alabama,,4849377,51.5
1001,Autauga County,AL,55395,51.4
1003,Baldwin County,AL,200111,51.2
56045,Weston County,WY,7201,47.7
"""
ONE_YEAR = """state_name,county_fips,county_name,votes_gop,votes_dem,total_votes
Alabama,01001,Autauga County,19838,7503,27770
Alabama,1003,Baldwin County,24578,"83,544",109679
Texas,48001,Anderson County,1,2,3
"""
YEARS = """year,state_po,county_name,county_fips,office,party,candidatevotes,mode
2016,AL,AUTAUGA,1001,US PRESIDENT,DEMOCRAT,5936,TOTAL
2016,AL,AUTAUGA,1001,US PRESIDENT,REPUBLICAN,18172,TOTAL
2020,AL,AUTAUGA,1001,US PRESIDENT,DEMOCRAT,7503,TOTAL
2020,AL,AUTAUGA,1001,US PRESIDENT,DEMOCRAT,1000,ABSENTEE
2020,AL,AUTAUGA,1001,US PRESIDENT,REPUBLICAN,19838,TOTAL
2020,AL,AUTAUGA,1001,US PRESIDENT,OTHER,429,TOTAL
2020,WY,WESTON,56045.0,US PRESIDENT,DEMOCRAT,60,ABSENTEE
2020,WY,WESTON,56045.0,US PRESIDENT,DEMOCRAT,300,ELECTION DAY
2020,WY,WESTON,56045.0,US PRESIDENT,REPUBLICAN,140,ELECTION DAY
2020,ME,VOTES FROM ABROAD,NA,US PRESIDENT,DEMOCRAT,9,TOTAL
"""


@pytest.fixture
def files(tmp_path):
    texts = {"facts.csv": FACTS, "one.csv": ONE_YEAR, "years.csv": YEARS}
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8-sig")
    return tmp_path


def test_counties_are_joined_by_code(files):
    found = load_counties(files / "one.csv", files / "facts.csv")
    assert found.fips == ["01001", "01003"]
    assert found.states == ["AL", "AL"]
    assert found.names == ["Autauga County", "Baldwin County"]
    assert found.features == ["PST045214", "SEX255214"]
    np.testing.assert_array_equal(found.X, [[55395, 51.4], [200111, 51.2]])
    np.testing.assert_array_equal(found.votes, [[7503, 19838], [83544, 24578]])
    np.testing.assert_array_equal(found.y, [0, 1])
    assert found.unmatched == ["48001", "56045"]
    assert "one.csv" in found.source
    assert "synthetic" not in found.source


def test_totals_are_taken_and_ways_to_vote_are_added_where_there_is_none(files):
    found = load_counties(files / "years.csv", files / "facts.csv", 2020)
    np.testing.assert_array_equal(found.votes, [[7503, 19838], [360, 140]])
    assert load_county_votes(files / "years.csv", 2016) == {"01001": (5936.0, 18172.0)}
    with pytest.raises(ValueError, match=r"no election of 2012; the years are 2016, 2020"):
        load_county_votes(files / "years.csv", 2012)


def test_devices_are_states_of_enough_counties(files):
    found = load_counties(files / "one.csv", files / "facts.csv")
    assert {k: v.tolist() for k, v in found.devices(1).items()} == {"AL": [0, 1]}
    assert found.devices(2) == {}


def test_a_missing_file_says_what_to_put_where(files):
    with pytest.raises(FileNotFoundError, match=r"gone\.csv: there is no such file; put there res"):
        load_counties(files / "gone.csv", files / "facts.csv")
    with pytest.raises(FileNotFoundError, match=r"county_facts\.csv, the Census QuickFacts"):
        load_counties(files / "one.csv", files / "gone.csv")


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("one.csv", "7503", "many", r"one\.csv, line 2: column 'votes_dem': a number is expected"),
        ("one.csv", "1003,Bald", "1001,Bald", r"line 3: county 01001 is there twice"),
        ("one.csv", "votes_dem", "dem", "the columns are not those of results"),
        ("one.csv", "1003,Bald", "x,Bald", r"line 3: a county's code of 5 digits expected"),
        ("one.csv", ",27770", "", r"line 2: 6 cells are expected as in the header, got 5"),
        ("facts.csv", "51.4", "", r"facts\.csv, line 4: column 'SEX255214'"),
        ("facts.csv", "area_name", "area", r"missing: \['area_name'\]"),
    ],
)
def test_bad_files_are_refused_with_the_place(files, name, old, new, message):
    path = files / name
    path.write_text(path.read_text(encoding="utf-8-sig").replace(old, new, 1))
    with pytest.raises(ValueError, match=message):
        load_counties(files / "one.csv", files / "facts.csv")


def test_files_of_other_counties_are_refused(files):
    (files / "one.csv").write_text(ONE_YEAR.replace("01001", "2").replace("1003,", "4,"))
    with pytest.raises(ValueError, match="no code of a county is in both files"):
        load_counties(files / "one.csv", files / "facts.csv")


def test_the_stand_in_is_as_large_as_the_real_table_and_says_synthetic():
    election, clusters = synthetic_election(0)
    devices = election.devices()
    sizes = [len(rows) for rows in devices.values()]
    assert (len(sizes), min(sizes), max(sizes)) == (30, 51, 254)
    assert election.X.shape == (len(election.y), 51)
    assert abs(election.y.mean() - 0.143) < 0.005
    assert election.source.startswith("synthetic")
    assert sorted(np.bincount(clusters)) == [15, 15]
    assert len(set(election.fips)) == len(election.y)
    again, _ = synthetic_election(0)
    np.testing.assert_array_equal(again.X, election.X)
    assert not np.array_equal(synthetic_election(1)[0].X[:9], election.X[:9])


def test_votes_of_the_stand_in_are_whole_and_decided():
    votes = synthetic_election(3)[0].votes
    assert (votes >= 0).all()
    np.testing.assert_array_equal(votes, np.round(votes))
    assert (votes[:, 0] != votes[:, 1]).all()


def test_the_stand_in_has_two_clusters_of_parameters():
    """One linear fit for each cluster points another way, and both explain their own better."""
    election, clusters = synthetic_election(1)
    rows = list(election.devices().values())
    means = []
    for c in (0, 1):
        inside = np.concatenate([rows[k] for k in range(30) if clusters[k] == c])
        signs = 2 * election.y[inside] - 1
        means.append(election.X[inside].T @ signs / len(inside))
    cosine = means[0] @ means[1] / np.linalg.norm(means[0]) / np.linalg.norm(means[1])
    assert abs(cosine) < 0.5
