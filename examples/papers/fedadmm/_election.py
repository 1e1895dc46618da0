"""Counties of Table 1 of [FedADMM] as devices, and the two graphs between their states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from fedadmm._setting import FloatArray, IntArray

from gtvcvx.datasets import (
    CountyElection,
    load_counties,
    load_county_votes,
    load_us_income,
    synthetic_election,
)

MORE_THAN = 50  # counties that a state must have
YEAR = 2020
BEFORE = range(2000, YEAR, 4)  # elections that a state's history is made of: up to 2016
RESULTS = ("countypres_2000-2020.csv", "2020_US_County_Level_Presidential_Results.csv")
FACTS = "county_facts.csv"
# Codes of the 48 contiguous states, which go by their names: without Alaska, the capital's
# district, Hawaii, and numbers that no state has.
CODES = [f"{k:02d}" for k in range(1, 57) if k not in (2, 3, 7, 11, 14, 15, 43, 52)]


@dataclass(frozen=True)
class Devices:
    """Rows of each state, edges of each graph by its name, and where all that is from."""

    election: CountyElection
    rows: list[IntArray]
    edges: Mapping[str, IntArray]
    graphs: str
    synthetic: bool


def stand_in() -> Devices:
    """Made-up counties. They have no places: the graph of neighbours is a ring."""
    election, cluster = synthetic_election(0)
    rows = list(election.devices(MORE_THAN).values())
    n = len(rows)
    ring = np.array([(i, i + 1) for i in range(n - 1)] + [(0, n - 1)])
    said = "synthetic: D_loc a ring in alphabetical order, D_his the two clusters of the stand-in"
    return Devices(election, rows, {"D_loc": ring, "D_his": joined(cluster)}, said, True)


def of_user(folder: Path) -> Devices:
    """Counties from a user's files; the history of states needs the file of many elections.

    Raises
    ------
    FileNotFoundError
        A file is not there; the message says what to put where.
    """
    results = next((folder / name for name in RESULTS if (folder / name).is_file()), None)
    results = results or folder / RESULTS[0]
    election = load_counties(results, folder / FACTS, YEAR)
    devices = election.devices(MORE_THAN)
    codes = [election.fips[rows[0]][:2] for rows in devices.values()]
    edges = {"D_loc": adjoining(codes)}
    said = "D_loc: states that adjoin"
    if results.name == RESULTS[0]:
        votes = [load_county_votes(results, year) for year in BEFORE]
        edges["D_his"] = joined(history(codes, votes))
        said += (
            f"; D_his: states that the same party won from {BEFORE[0]} to {BEFORE[-1]}, and all "
            "others, the swing states, among themselves"
        )
    return Devices(election, list(devices.values()), edges, said, False)


def adjoining(codes: list[str]) -> IntArray:
    """Pairs of states that share a border, as positions in a list of their codes."""
    income = load_us_income()
    place = {code: i for i, code in enumerate(codes)}
    pairs = [(CODES[a], CODES[b]) for a, b in income.edges]
    return np.array([sorted((place[a], place[b])) for a, b in pairs if {a, b} <= set(place)])


def joined(group: IntArray) -> IntArray:
    """All pairs within groups."""
    first, second = np.triu_indices(len(group), 1)
    same = group[first] == group[second]
    return np.stack([first[same], second[same]], axis=1)


def history(codes: list[str], votes: list[dict[str, tuple[float, float]]]) -> IntArray:
    """Return 1 for states that were Democratic in all elections, 0 for Republican, 2 for others."""
    won = []
    for election in votes:
        sums = {code: np.zeros(2) for code in codes}
        for fips, cast in election.items():
            if fips[:2] in sums:
                sums[fips[:2]] += cast
        won.append([sums[code][0] > sums[code][1] for code in codes])
    share = np.mean(won, axis=0)
    return np.where(share == 1.0, 1, np.where(share == 0.0, 0, 2))


@dataclass(frozen=True)
class Split:
    """Two thirds of each state's counties for training, the others for the test.

    Figures are in units of their deviation over all training rows; the first column is constant.
    """

    X: FloatArray
    y: IntArray
    train: list[IntArray]
    test: list[IntArray]

    @classmethod
    def of(cls, devices: Devices, seed: int) -> Split:
        """Cut at random."""
        rng = np.random.default_rng([seed, 4])
        orders = [rng.permutation(rows) for rows in devices.rows]
        train = [order[: round(2 * len(order) / 3)] for order in orders]
        test = [order[len(kept) :] for order, kept in zip(orders, train, strict=True)]
        raw = devices.election.X
        seen = raw[np.concatenate(train)]
        spread = seen.std(axis=0)
        scaled = (raw - seen.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
        constant = np.ones((len(raw), 1))
        return cls(np.hstack([constant, scaled]), devices.election.y, train, test)

    def scores(self, w: FloatArray) -> FloatArray:
        """Accuracy, balanced accuracy and log-loss of states' parameters (n, d) on the test."""
        parts = zip(self.test, w, strict=True)
        z = np.concatenate([self.X[rows] @ own for rows, own in parts])
        y = self.y[np.concatenate(self.test)] == 1
        loss = np.logaddexp(0.0, np.where(y, -z, z)).mean()
        return np.array([*accuracies(z > 0.0, y), loss])

    def majority(self) -> FloatArray:
        """Score the answer that is most frequent in training, with its share as chance."""
        share = self.y[np.concatenate(self.train)].mean()
        chance = np.log(share / (1.0 - share))
        w = np.zeros((len(self.test), self.X.shape[1]))
        w[:, 0] = chance
        return self.scores(w)


def accuracies(said: FloatArray, y: FloatArray) -> tuple[float, float]:
    """Share of right answers, and the mean of the shares in the two classes."""
    right = said == y
    return float(right.mean()), float((right[y].mean() + right[~y].mean()) / 2.0)
