"""``gtvcvx predict``: predictions for the rows of a table from a solution of ``fit``."""

from __future__ import annotations

import csv
from argparse import Namespace
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from gtvcvx._arrays import FloatArray
from gtvcvx.cli._loading import check_outputs, load_fitted
from gtvcvx.cli._losses import LossChoice
from gtvcvx.cli._report import counted, emit, entry, listed, working
from gtvcvx.cli._status import PROVED
from gtvcvx.files._atomic import atomic_write
from gtvcvx.files._tables import DataTable, match_nodes, read_data
from gtvcvx.solution import Solution


def run(args: Namespace) -> int:
    """Load, read, predict, write, report."""
    if args.target is not None and not args.score:
        raise ValueError("--target: only with --score")
    inputs = {"SOLUTION": args.solution, "DATA": args.data}
    check_outputs({"--output": args.output}, inputs)
    with working(args, "reading"):
        model = Model.load(args.solution)
        node = args.node or model.column("node", args.solution)
        table = read_data(args.data, node=node, target=None, features=model.features)
        predictor = model.predictor(table)
        score = _score(args, model, node) if args.score else None
    columns = model.predictions(predictor, table)
    with working(args, "writing"):
        _write(args.output, node, table, columns)
    lines = [
        entry("Model", f"loss {model.loss.text()}; features {listed(model.features)}"),
        entry("Data", f"{counted(len(table.node), 'row')} at {_n_nodes(table)}"),
    ]
    if score is not None:
        rows = int(score.pop("rows"))
        said = "; ".join(f"{key.replace('_', ' ')} {x:.6g}" for key, x in score.items())
        lines.append(entry("Score", f"{said}; {counted(rows, 'row')} with a target"))
        score["rows"] = rows
    lines.append(entry("Written", args.output))
    data = {
        "loss": model.loss.data(),
        "features": model.features,
        "rows": len(table.node),
        "columns": [node, *columns],
        "score": score,
        "written": {"output": args.output},
    }
    emit(args, lines, data)
    return PROVED


@dataclass(frozen=True)
class Model:
    """What a solution of ``fit`` says about rows.

    Attributes
    ----------
    solution : Solution
    features : list of str
        Columns of the file that the model reads; the intercept is none.
    loss : LossChoice
    labels : list of str, or None
        Texts of the targets' values, the smallest first.
    """

    solution: Solution
    features: list[str]
    loss: LossChoice
    labels: list[str] | None

    @staticmethod
    def load(path: str) -> Model:
        """Read a solution file; one that does not say what its columns are is refused."""
        solution = load_fitted(path)
        info = solution.info
        features = list(info.get("features") or [])
        if not features:
            raise ValueError(
                f"{path}: the solution does not say which columns it is of; "
                "'gtvcvx fit' writes such as do"
            )
        if len(features) != solution.w.shape[1]:
            raise ValueError(
                f"{path}: the file is damaged (it has {len(features)} names for "
                f"{solution.w.shape[1]} coefficients)"
            )
        loss = LossChoice.of_data(info.get("loss"))
        if loss.is_point:
            raise ValueError(f"{path}: a solution with the loss point predicts no targets")
        if info.get("intercept"):
            features.pop()
        if loss.is_multinomial:  # the names above are those of features and classes
            columns = info.get("columns") or {}
            if "features" not in columns:
                raise ValueError(f"{path}: the solution does not say which columns it is of")
            features = list(columns["features"])
        return Model(solution, features, loss, info.get("labels"))

    def column(self, name: str, path: str) -> str:
        """Return the name of the node or target column of the fit."""
        found = (self.solution.info.get("columns") or {}).get(name)
        if found is None:
            raise ValueError(f"--{name}: {path} does not say which column it is, name it")
        return str(found)

    def predictor(self, table: DataTable) -> FloatArray:
        """Return what `LossChoice.predictors` says about the rows."""
        info, w = self.solution.info, self.solution.w
        owner = match_nodes(list(self.solution.nodes), table, "the solution")
        X = table.X
        if info.get("standardized") is not None:
            scaling = info["standardized"]
            with np.errstate(over="ignore"):
                X = (X - np.array(scaling["mean"])) / np.array(scaling["scale"])
        if info.get("intercept"):
            X = np.column_stack([X, np.ones(len(X))])
        values = self.loss.predictors(X, w[owner])
        _refuse_infinite(values, table, "prediction")
        return values

    def predictions(self, predictor: FloatArray, table: DataTable) -> dict[str, Any]:
        """Return the columns of the answer by name, each with N entries."""
        if self.loss.name == "poisson":
            with np.errstate(over="ignore"):
                rate = np.exp(predictor)
            _refuse_infinite(rate, table, "rate")
            return {"rate": rate.tolist()}
        if self.loss.is_multinomial:
            return self._class_columns(predictor)
        if not self.loss.has_two_labels:
            return {"prediction": predictor.tolist()}
        low, high = self.labels or [f"{end}" for end in self.loss.ends]
        label = np.where(predictor > 0, high, low).tolist()
        if self.loss.name == "hinge":
            return {"score": predictor.tolist(), "label": label}
        return {"probability": expit(predictor).tolist(), "label": label}

    def _class_columns(self, scores: FloatArray) -> dict[str, Any]:
        """Return the probabilities of the classes, and the labels of the likeliest ones."""
        labels = self.labels or []
        shares = softmax(scores, axis=1).T.tolist()
        found = {
            f"probability ({label})": share for label, share in zip(labels, shares, strict=True)
        }
        return {**found, "label": [labels[k] for k in np.argmax(scores, axis=1)]}

    def score(self, path: str, node: str, target: str) -> dict[str, float]:
        """Return means over the rows of a file that have a target, and how many there are."""
        table = read_data(
            path,
            node=node,
            target=target,
            features=self.features,
            targets=self.loss.targets(self.labels),
        )
        return {**self.loss.quality(self.predictor(table), table.y), "rows": len(table.y)}


def _refuse_infinite(values: FloatArray, table: DataTable, what: str) -> None:
    wrong = np.flatnonzero(~np.isfinite(values.reshape(len(values), -1)).all(axis=1))
    if wrong.size:
        line = table.lines[wrong[0]]
        raise ValueError(f"{table.path}, line {line}: the {what} is too large for a number")


def _score(args: Namespace, model: Model, node: str) -> dict[str, float]:
    """Means over the rows that have a target."""
    return model.score(args.data, node, args.target or model.column("target", args.solution))


def score_of_file(solution: str, data: str) -> dict[str, float]:
    """Return means over a file's rows, by the node and target columns of the fit."""
    model = Model.load(solution)
    columns = [model.column(name, solution) for name in ("node", "target")]
    return model.score(data, *columns)


def _n_nodes(table: DataTable) -> str:
    return counted(len(set(table.node)), "node")


def _write(path: str, node: str, table: DataTable, columns: dict[str, Any]) -> None:
    with atomic_write(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([node, *columns])
        writer.writerows(zip(table.node, *columns.values(), strict=True))
