"""Gaps of the float view of the losses against the rules of the kernel."""

import numpy as np
import pytest
from _plain_instances import instance

from verify.instance import _integers as integers
from verify.instance._constraints import Constraints
from verify.instance._instance import load
from verify.kernel.losses import term_of
from verify.kernel.numbers import table, unit


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("loss", ["everything", "every_kind", "box_lasso"])
def test_float_node_gaps_are_those_of_the_kernel(loss: str, d: int) -> None:
    """h(B w) + h*(r) - <r, B w> with the kernel's value and conjugate, term by term."""
    data = instance(4, loss, "l2", d=d)
    inst = load(data)
    rng = np.random.default_rng(0)
    w, exact = Constraints(inst).moved(rng.standard_normal((inst.n, d)))
    point, k_w = table(integers.texts(exact, 0) if exact is not None else w, *w.shape, "w")
    for term, plain in zip(inst.terms, inst.plain["terms"], strict=True):
        r = integers.to_grid(rng.standard_normal(term.shape), 60)
        r = r if term.domain is None else term.domain.clip(r, 60)
        rules = term_of(plain, d)
        conjugate, image, k = rules.dual(integers.texts(r, 60), "r")
        inner = sum(
            sum(a * b for a, b in zip(v, point[i], strict=True)) for i, v in image.items()
        ) * unit(k + k_w)
        node = term.gaps(integers.to_floats(r, 60), w)
        assert (node >= 0).all()
        wanted = float(rules.value(point, k_w).hi + conjugate - inner)
        assert (node.sum(), plain["kind"]) == (pytest.approx(wanted, rel=1e-9), plain["kind"])
        assert set(np.flatnonzero(node)) <= set(term.node.tolist())
