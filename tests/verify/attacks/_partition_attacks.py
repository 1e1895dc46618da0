"""Attacks on documents about partitions, and what the oracle says of the answers."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from fractions import Fraction as F
from typing import Any

from _certificates import Answer, Attack
from _definition1 import TIE, norm_of, slack
from _objective import FIELDS, rational_data
from _partition_documents import NO, YES, instance, witness
from _texts import Document, data_numbers, hashed, rounded
from _texts import witness as texts

Change = Callable[[Document, Document, random.Random], None]
COUNTS = ("claim", "cluster", "sink", "flow", "scale", "sets", "left_out")


def little(rng: random.Random) -> F:
    return F(rng.choice((-1, 1)), 1 << rng.randint(0, 45))


def constant(data: Document, entry: Document, rng: random.Random) -> None:
    name = rng.choice(("alpha", "beta", "delta", "modulus"))
    if isinstance(entry[name], list):
        k = rng.randrange(len(entry[name]))
        entry[name][k] = F(entry[name][k]) * (1 + little(rng)) + rng.choice((0, abs(little(rng))))
    elif entry[name] is not None:
        entry[name] = rng.choice((None, F(entry[name]) * (1 + little(rng))))


def no_constants(data: Document, entry: Document, rng: random.Random) -> None:
    entry["alpha"] = None
    for name in ("beta", "delta"):
        entry[name] = [0] * len(entry[name])


def center(data: Document, entry: Document, rng: random.Random) -> None:
    more = little(rng)
    entry["center"] = [F(x) + more * rng.choice((0, 1)) for x in entry["center"]]


def roots(data: Document, entry: Document, rng: random.Random) -> None:
    """Scale, cut, drop or exchange a root or the inverse."""
    found = entry.get("roots", {})
    name = rng.choice(list(found) or [""])
    by, kind = 1 + little(rng), rng.randrange(3)
    if not found or kind == 0:
        entry.pop("roots", None)
    elif name == "local":
        rows = rng.choice(found[name])
        if rows:
            del rows[rng.randrange(len(rows))]
    elif kind == 1 or not found[name]:
        found[name] = [[F(x) * by for x in row] for row in found[name]]
    else:
        rng.choice(found[name])[rng.randrange(data["dim"])] += float(little(rng))


def directions(data: Document, entry: Document, rng: random.Random) -> None:
    if "directions" in entry:
        v = rng.choice([entry["directions"]["alpha"], *entry["directions"]["beta"]])
        kind, j = rng.randrange(3), rng.randrange(len(v))
        if kind == 0:
            v[j] = float(v[j]) + float(little(rng))
        elif kind == 1:
            v[:] = [x * 1024.0 for x in v]
        else:
            v[:] = [float(rng.choice((-1, 0, 1))) for _ in v]
            v[j] = 1.0


def proof(data: Document, entry: Document, rng: random.Random) -> None:
    """Change the flow, the sink or the sets."""
    nodes = entry["cluster"]
    if entry["claim"] == YES:
        kind, flow = rng.randrange(4), entry["flow"]
        if kind == 0:
            entry["sink"] = rng.choice(nodes)
        elif kind == 1:
            entry["scale"] = max(1, entry["scale"] + rng.choice((-1, 1, -(1 << 30))))
        elif flow:
            k = rng.randrange(len(flow))
            flow[k] += rng.choice((-1, 1)) << rng.randint(0, 40) if kind == 2 else -2 * flow[k]
        return
    kind = rng.randrange(3)
    if kind == 0:
        entry["left_out"] = sorted({*entry["left_out"], rng.choice(nodes)})
    elif kind == 1 and entry["sets"]:
        del entry["sets"][rng.randrange(len(entry["sets"]))]
    else:
        entry["sets"].append(sorted(rng.sample(nodes, rng.randint(1, len(nodes)))))


def claim(data: Document, entry: Document, rng: random.Random) -> None:
    """Exchange a cluster or its claim for something else."""
    kind = rng.randrange(3)
    if kind == 0:
        entry["cluster"] = entry["cluster"][::-1]
    elif kind == 1 and len(entry["cluster"]) > 1:
        entry["cluster"] = entry["cluster"][:-1]
        for name in ("beta", "delta"):
            entry[name] = entry[name][:-1]
    else:
        entry["cluster"] = entry["cluster"][:1]


def problem(data: Document, entry: Document, rng: random.Random) -> None:
    """Change the data below a witness."""
    kind = rng.randrange(4)
    if kind == 0 and data["weights"]:
        data["weights"][rng.randrange(len(data["weights"]))] *= rng.choice(
            (F(1, 2), 2, 1 + little(rng) / 2)
        )
    elif kind == 1:
        data["lam"] *= rng.choice((F(1, 2), 2, 1 + little(rng) / 2))
    elif kind == 2:
        data["penalty"] = {"kind": rng.choice(("l1", "l2", "linf"))}
    elif data["terms"]:
        term = rng.choice(data["terms"])
        key = rng.choice([name for name in term if name not in ("kind", "node")])
        if term[key]:
            k = rng.randrange(len(term[key]))
            if isinstance(term[key][k], list):
                term[key][k][0] = abs(term[key][k][0] + little(rng))
            else:
                term[key][k] = abs(term[key][k]) * (1 + abs(little(rng)))


CHANGES: tuple[Change, ...] = (
    constant, constant, no_constants, center, roots, directions, proof, proof, claim, problem,
    problem,
)  # fmt: skip


def attacks(seed: int) -> Attack:
    """Return the attack of a seed: true or false claims, half of them changed afterwards."""
    rng = random.Random(f"partition {seed}")
    data, clusters = instance(rng)
    data["lam"], data["weights"] = rounded(data["lam"]), rounded(data["weights"])
    entries, names = [], []
    whole = YES if rng.random() < 0.5 else NO
    for nodes in clusters if whole == YES else rng.sample(clusters, rng.randint(1, len(clusters))):
        said = whole if rng.random() < 0.9 else rng.choice((YES, NO))
        entries.append(witness(data, list(nodes), said, rng))
    for _ in range(rng.choice((0, 0, 0, 1, 1, 2))):
        change = rng.choice(CHANGES)
        names.append(change.__name__)
        change(data, rng.choice(entries), rng)
    document = written(data, entries, whole)
    name = f"partition {seed}: {norm_of(data)} d = {data['dim']} {whole} " + ", ".join(names)
    return Attack(name, document, json.dumps(document).encode(), 1e-6, None)


def written(data: Document, entries: list[Document], whole: str) -> Document:
    """Return the document in texts, with the right hash."""
    terms = [{key: data_numbers(rounded(value)) if key in FIELDS else value
              for key, value in term.items()} for term in data["terms"]]  # fmt: skip
    penalty = {key: data_numbers(value) if key == "p" else value
               for key, value in data["penalty"].items()}  # fmt: skip
    numbers = {key: data_numbers(rounded(data[key])) for key in ("weights", "lam")}
    clusters = [{key: value if key in COUNTS else _texts(value) for key, value in entry.items()}
                for entry in entries]  # fmt: skip
    return hashed({
        "schema": "gtv-connectivity/1",
        "data": {**data, **numbers, "terms": terms, "penalty": penalty},
        "claim": whole,
        "clusters": clusters,
    })  # fmt: skip


def _texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _texts(v) for key, v in value.items()}
    if value is None or (isinstance(value, list) and None in value):
        return None if value is None else [_texts(v) for v in value]
    return texts(value)


def lies(attack: Attack, answer: Answer) -> list[str]:
    """Return what is false in an answer to an attack: claims of a certified document."""
    if "internal" in answer.reason:
        return [answer.reason]
    if answer.status != 0:
        return []
    data, found = rational_data(attack.document["data"]), []
    clusters = attack.document["clusters"]
    for entry in clusters:
        room = slack(data, entry["cluster"])
        if (room < -TIE) if entry["claim"] == YES else (room > TIE):
            found.append(f"{entry['cluster']} is not {entry['claim']}: slack {room:.3g}")
    covered = sorted(i for entry in clusters for i in entry["cluster"])
    claims = {entry["claim"] for entry in clusters}
    if attack.document["claim"] == YES:
        if covered != list(range(data["n_nodes"])) or NO in claims:
            found.append("not all nodes are in clusters that are well-connected")
    elif NO not in claims:
        found.append("no cluster is claimed not well-connected")
    return found
