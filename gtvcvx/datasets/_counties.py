"""Counties of the USA: what the census says of them and how they voted, from users' own files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.datasets._user_files import first_of, header_of, number, table_rows, user_file
from verify._display import fields_text

RESULTS = (
    "results of a presidential election by county as CSV: countypres_2000-2020.csv of the MIT "
    "Election Data and Science Lab (doi 10.7910/DVN/VOQCHQ), or a table with a line a county and "
    "the columns county_fips, votes_dem, votes_gop"
)
FACTS = (
    "county_facts.csv, the Census QuickFacts of 2014: columns fips, area_name, "
    "state_abbreviation and 51 figures"
)
_FIPS = ("county_fips", "combined_fips", "fips", "fips_code")
# How the file of many elections names the two parties, and the line that is the sum of all ways
# to vote.
_PARTIES = {"democrat": 0, "republican": 1}
_TOTAL = ("total", "total votes")


@dataclass(frozen=True, eq=False)
class CountyElection:
    """Figures of counties and their votes, one row a county.

    Attributes
    ----------
    fips : list of str, length n
        Codes of five digits, of which the first two are the state's.
    states : list of str, length n
        Two letters each.
    names : list of str, length n
        Names of the counties.
    features : list of str, length p
        Names of the columns of X.
    X : ndarray of float64, shape (n, p)
        Figures in their own units, not scaled.
    votes : ndarray of float64, shape (n, 2)
        Votes for the Democratic and for the Republican candidate.
    source : str
        Where the figures come from; begins with "synthetic" for those that are made up.
    unmatched : list of str
        Codes that only one of the two files has.
    """

    fips: list[str]
    states: list[str]
    names: list[str]
    features: list[str]
    X: FloatArray
    votes: FloatArray
    source: str
    unmatched: list[str]

    __repr__ = fields_text

    @property
    def y(self) -> IntArray:
        """1 where more votes were Democratic than Republican, else 0; shape (n,)."""
        return (self.votes[:, 0] > self.votes[:, 1]).astype(np.int64)

    def devices(self, more_than: int = 50) -> dict[str, IntArray]:
        """Rows of each state that has more than so many counties, by state in alphabetical order.

        Parameters
        ----------
        more_than : int
            States of at most so many counties are left out.
        """
        states = np.array(self.states)
        rows = {state: np.flatnonzero(states == state) for state in sorted(set(self.states))}
        return {state: found for state, found in rows.items() if len(found) > more_than}


def load_counties(
    results: str | os.PathLike[str], facts: str | os.PathLike[str], year: int = 2020
) -> CountyElection:
    """Join a user's copies of election results and of census figures by the code of the county.

    Parameters
    ----------
    results : path-like
        Results by county as CSV: either those of several elections with the columns ``year``,
        ``county_fips``, ``party``, ``candidatevotes`` (``mode``: where some ways to vote have
        lines of their own, the line of the total is taken, or else their sum), or one election
        with ``county_fips`` (or ``combined_fips``), ``votes_dem``, ``votes_gop``.
    facts : path-like
        ``county_facts.csv``: ``fips``, ``area_name``, ``state_abbreviation``, and figures.
    year : int
        Which election of a file of several.

    Returns
    -------
    CountyElection
        Counties that both files have, in the order of their codes.

    Raises
    ------
    FileNotFoundError
        A file is not there; the message says what to put where.
    ValueError
        Columns are missing, a cell is no number, a county comes twice, or none is in both files.

    Notes
    -----
    Neither file comes with the package. Lines without a code (votes from abroad) are left out, and
    so are the lines of ``county_facts.csv`` for states and for the whole country.
    """
    votes = read_votes(user_file(results, RESULTS), year)
    table = _read_facts(user_file(facts, FACTS))
    fips = sorted(set(votes) & set(table.rows))
    if not fips:
        raise ValueError(f"{results} and {facts}: no code of a county is in both files")
    rows = [table.rows[code] for code in fips]
    return CountyElection(
        fips=fips,
        states=[state for _, state, _ in rows],
        names=[name for name, _, _ in rows],
        features=table.features,
        X=np.array([figures for _, _, figures in rows]),
        votes=np.array([votes[code] for code in fips]),
        source=f"the user's copies of {Path(results).name} ({year}) and {Path(facts).name}",
        unmatched=sorted(set(votes) ^ set(table.rows)),
    )


def load_county_votes(
    results: str | os.PathLike[str], year: int = 2020
) -> dict[str, tuple[float, float]]:
    """Read Democratic and Republican votes by the code of the county, as `load_counties` does.

    Parameters
    ----------
    results : path-like
        Results by county as CSV.
    year : int
        Which election of a file of several.
    """
    return read_votes(user_file(results, RESULTS), year)


def read_votes(path: Path, year: int) -> dict[str, tuple[float, float]]:
    """Read Democratic and Republican votes by code, from a file of one or of several elections."""
    header = [name.lower() for name in header_of(path)]
    code = first_of(_FIPS, header)
    if code and {"year", "party", "candidatevotes"} <= set(header):
        return _votes_by_party(path, year, code)
    if code and {"votes_dem", "votes_gop"} <= set(header):
        return _votes_by_county(path, code)
    raise ValueError(f"{path}: the columns are not those of {RESULTS}; got {', '.join(header)}")


def _votes_by_county(path: Path, code: str) -> dict[str, tuple[float, float]]:
    found: dict[str, tuple[float, float]] = {}
    for line, row in table_rows(path):
        fips = _five_digits(row[code], path, line)
        if fips is None:
            continue
        if fips in found:
            raise ValueError(f"{path}, line {line}: county {fips} is there twice")
        found[fips] = (
            number(row["votes_dem"], path, line, "votes_dem"),
            number(row["votes_gop"], path, line, "votes_gop"),
        )
    return found


def _votes_by_party(path: Path, year: int, code: str) -> dict[str, tuple[float, float]]:
    """Add up the lines of a party in a county, or take those of the total where there are some."""
    parts: dict[str, list[float]] = {}
    totals: dict[str, list[float]] = {}
    years = set()
    for line, row in table_rows(path):
        years.add(row["year"])
        party = _PARTIES.get(row["party"].strip().lower())
        fips = _five_digits(row[code], path, line)
        if row["year"] != str(year) or party is None or fips is None:
            continue
        if row["candidatevotes"].strip().upper() in ("", "NA"):
            continue
        total = row.get("mode", "total").strip().lower() in _TOTAL
        sums = (totals if total else parts).setdefault(fips, [0.0, 0.0])
        sums[party] += number(row["candidatevotes"], path, line, "candidatevotes")
    if not totals and not parts:
        have = ", ".join(sorted(years))
        raise ValueError(f"{path}: there is no election of {year}; the years are {have}")
    return {fips: (dem, rep) for fips, (dem, rep) in (parts | totals).items()}


@dataclass(frozen=True)
class _Facts:
    """Figures by code: (name, state, numbers)."""

    features: list[str]
    rows: dict[str, tuple[str, str, list[float]]]


def _read_facts(path: Path) -> _Facts:
    header = header_of(path)
    lower = [name.lower() for name in header]
    wanted = ("fips", "area_name", "state_abbreviation")
    missing = [name for name in wanted if name not in lower]
    if missing or len(header) <= len(wanted):
        raise ValueError(f"{path}: the columns are not those of {FACTS}; missing: {missing}")
    features = [name for name in header if name.lower() not in wanted]
    rows = dict(_facts_rows(path, features))
    return _Facts(features, rows)


def _facts_rows(
    path: Path, features: list[str]
) -> Iterator[tuple[str, tuple[str, str, list[float]]]]:
    """Yield the lines of counties; the country and the states have no state's letters."""
    for line, row in table_rows(path):
        fips = _five_digits(row["fips"], path, line)
        state = row["state_abbreviation"].strip()
        if fips is None or not state:
            continue
        figures = [number(row[name.lower()], path, line, name) for name in features]
        yield fips, (row["area_name"].strip(), state, figures)


def _five_digits(text: str, path: Path, line: int) -> str | None:
    """Return a code with its leading zeros, None for a line that is about no county."""
    text = text.strip()
    if text.upper() in ("", "NA"):
        return None
    if not re.fullmatch(r"\d{1,7}(\.0)?", text):
        raise ValueError(f"{path}, line {line}: a county's code of 5 digits expected, got {text!r}")
    return text.removesuffix(".0").zfill(5)
