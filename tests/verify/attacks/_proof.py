"""A certificate in rational numbers, to be changed and written down again."""

from __future__ import annotations

from fractions import Fraction as F
from typing import Any

from _objective import FIELDS, ROWS, rational_data
from _texts import Document, data_numbers, hashed, read, rounded, witness

ABSORBING = ("point", "ridge", "box", "simplex", "l1")  # blocks that are the identity


class Proof:
    """Data, point and multipliers of a document; `close` puts conservation right."""

    def __init__(self, document: Document) -> None:
        self.data = rational_data(document["data"])
        self.w = read(document["w"])
        self.u, self.r = read(document["dual"]["u"]), read(document["dual"]["r"])
        self.quadratic = {k: read(v) for k, v in document["dual"].get("quadratic", {}).items()}
        self.claim: Document = {"rtol": F(1, 10**6), "upper": None, "lower": None}
        self.better: Any = None

    @property
    def terms(self) -> list[Document]:
        return self.data["terms"]

    @property
    def d(self) -> int:
        return int(self.data["dim"])

    def imbalance(self) -> list[list[F]]:
        """Return what conservation lacks, for each node."""
        sums = [[F(0)] * self.d for _ in range(self.data["n_nodes"])]
        for (head, tail), flow in zip(self.data["edges"], self.u, strict=False):
            for j, x in enumerate(flow):
                sums[head][j] += x
                sums[tail][j] -= x
        for term, r in zip(self.terms, self.r, strict=True):
            for k, i in enumerate(term["node"]):
                row = [r[k] * x for x in term["X"][k]] if term["kind"] in ROWS else r[k]
                sums[i] = [a + b for a, b in zip(sums[i], row, strict=True)]
        return sums

    def close(self, choose: Any) -> None:
        """Let an identity block of each node, if it has one, take what conservation lacks."""
        for i, row in enumerate(self.imbalance()):
            if not any(row):
                continue
            blocks = [(t, term["node"].index(i)) for t, term in enumerate(self.terms)
                      if term["kind"] in ABSORBING and i in term["node"]]  # fmt: skip
            if blocks:
                points = [b for b in blocks if self.terms[b[0]]["kind"] == "point"]
                t, k = choose(points or blocks) if choose([0, 1, 1, 1]) else choose(blocks)
                self.r[t][k] = [a - b for a, b in zip(self.r[t][k], row, strict=True)]

    def round_data(self) -> None:
        """Make all data doubles, as the format wants."""
        self.data["weights"] = rounded(self.data["weights"])
        self.data["lam"] = rounded(self.data["lam"])
        if "Q" in self.data["penalty"]:
            self.data["penalty"]["Q"] = rounded(self.data["penalty"]["Q"])
        for term in self.terms:
            term.update({key: rounded(term[key]) for key in FIELDS if key in term})

    def document(self) -> Document:
        penalty = {key: data_numbers(value) if key in ("Q", "p") else value
                   for key, value in self.data["penalty"].items()}  # fmt: skip
        terms = [{key: data_numbers(value) if key in FIELDS else value
                  for key, value in term.items()} for term in self.terms]  # fmt: skip
        numbers = {key: data_numbers(self.data[key]) for key in ("weights", "lam")}
        dual: Document = {"u": witness(self.u), "r": witness(self.r)}
        if self.quadratic:
            dual["quadratic"] = {key: witness(value) for key, value in self.quadratic.items()}
        claim = {key: None if v is None else witness(v) for key, v in self.claim.items()}
        document = {
            "schema": "gtv-certificate/1",
            "data": {**self.data, **numbers, "penalty": penalty, "terms": terms},
            "claim": claim,
            "w": witness(self.w),
            "dual": dual,
        }
        if self.better is not None:
            document["better"] = witness(self.better)
        return hashed(document)
