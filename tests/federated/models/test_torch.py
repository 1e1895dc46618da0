"""Modules of PyTorch as local models; skipped where it is not installed."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gtvcvx.federated.models import LocalModel, TorchLoss, TwoLayerNetwork


def test_without_pytorch_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r'extra \'torch\' \(pip install "gtvcvx\[torch\]"\)'):
        TorchLoss(None, None, [[1.0]], [1.0])


def torch_or_skip():
    return pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")


def instance(**options):
    """A TorchLoss that is a TwoLayerNetwork, and that network; weights are transposed."""
    torch = torch_or_skip()
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((12, 3)), rng.integers(0, 3, 12)
    module = torch.nn.Sequential(
        torch.nn.Linear(3, 4, bias=False), torch.nn.ReLU(), torch.nn.Linear(4, 3, bias=False)
    )
    steps = options.pop("network_steps", 40)
    network = TwoLayerNetwork(X, y, [0, 1, 2], 4, steps=steps)
    return TorchLoss(module, torch.nn.CrossEntropyLoss(), X, y, **options), network


def of_network(w):
    """Order of parameters as in the network: matrices are stored transposed by PyTorch."""
    return np.concatenate([w[:12].reshape(4, 3).T.ravel(), w[12:].reshape(3, 4).T.ravel()])


def test_it_agrees_with_the_network_in_numpy():
    loss, network = instance()
    w = loss.initial()
    assert isinstance(loss, LocalModel)
    assert loss.dim == network.dim == len(w)
    assert loss.value(w) == pytest.approx(network.value(of_network(w)), rel=1e-13)
    ours = network.gradient(of_network(w))
    np.testing.assert_allclose(of_network(loss.gradient(w)), ours, atol=1e-15)
    np.testing.assert_allclose(
        of_network(loss.prox(w, 0.7)), network.prox(of_network(w), 0.7), rtol=1e-8
    )


def test_the_proximal_term_has_a_gradient():
    torch = torch_or_skip()
    loss, _ = instance(optimizer=torch.optim.SGD, lr=0.05, steps=30)
    w = loss.initial()
    plain = TwoLayerNetwork.prox  # fixed steps of the network are steps of SGD
    same = TwoLayerNetwork(loss._X, loss._y, [0, 1, 2], 4, steps=30, step=0.05)
    np.testing.assert_allclose(
        of_network(loss.prox(w, 0.1)), plain(same, of_network(w), 0.1), rtol=1e-10
    )
    near, far = loss.prox(w, 0.1), loss.prox(w, 1e9)
    assert np.linalg.norm(near - w) < 0.3 * np.linalg.norm(far - w)


@pytest.mark.parametrize("name", ["Adam", "LBFGS", "RMSprop"])
def test_other_optimizers_reduce_the_objective(name):
    torch = torch_or_skip()
    loss, _ = instance(optimizer=getattr(torch.optim, name), lr=0.01)
    w = loss.initial()
    z = loss.prox(w, 1.0)
    assert loss.value(z) + np.sum((z - w) ** 2) / 2 < loss.value(w)
    np.testing.assert_array_equal(loss.prox(w, 1.0), z)


def test_nothing_is_remembered_and_the_users_module_stays():
    torch = torch_or_skip()
    module = torch.nn.Sequential(
        torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3), torch.nn.Dropout(), torch.nn.Linear(3, 1)
    )
    before = {name: t.clone() for name, t in module.state_dict().items()}
    X, y = np.arange(8.0).reshape(4, 2), np.arange(4.0)[:, None]
    loss = TorchLoss(module, torch.nn.MSELoss(), X, y, steps=3)
    w = loss.initial()
    first = loss.value(w)
    moved = loss.prox(w, 1.0)
    assert not np.array_equal(moved, w)
    assert loss.value(w) == first
    np.testing.assert_array_equal(loss.initial(), w)
    assert module.training
    assert all(torch.equal(before[name], t) for name, t in module.state_dict().items())
    there = loss.module_at(moved)
    with torch.no_grad():
        np.testing.assert_array_equal(there(torch.tensor(X)).numpy(), loss.predict(moved, X))


def test_frozen_parameters_stay_and_unused_ones_have_no_slope():
    torch = torch_or_skip()
    module = torch.nn.Linear(2, 1)
    module.bias.requires_grad_(False)
    module.register_parameter("unused", torch.nn.Parameter(torch.ones(2)))
    loss = TorchLoss(module, torch.nn.MSELoss(), [[1.0, 2.0]], [[1.0]])
    assert loss.dim == 4
    assert (loss.gradient(loss.initial()) == 0).sum() == 2


def test_a_pickled_copy_works_in_another_process(tmp_path):
    loss, _ = instance()
    w = loss.initial()
    (tmp_path / "loss.pkl").write_bytes(pickle.dumps((loss, w)))
    script = (
        "import pickle, sys; loss, w = pickle.load(open(sys.argv[1], 'rb'));"
        "print(repr(loss.prox(w, 0.7).tolist()))"
    )
    root = Path(__file__).resolve().parents[3]
    found = [str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
    shown = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "loss.pkl")],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(found)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    np.testing.assert_allclose(np.array(eval(shown)), loss.prox(w, 0.7), rtol=1e-12)


def test_bad_input_is_refused_by_name():
    torch = torch_or_skip()
    module, error = torch.nn.Linear(1, 1), torch.nn.MSELoss()
    with pytest.raises(TypeError, match=r"module: a torch.nn.Module is expected, got int"):
        TorchLoss(3, error, [[1.0]], [[1.0]])
    with pytest.raises(TypeError, match="loss: a function"):
        TorchLoss(module, 3, [[1.0]], [[1.0]])
    with pytest.raises(TypeError, match="loss: a tensor of one number"):
        TorchLoss(module, torch.nn.MSELoss(reduction="none"), [[1.0], [2.0]], [[1.0], [2.0]])
    with pytest.raises(ValueError, match=r"X: entry \(0, 0\) is nan"):
        TorchLoss(module, error, [[np.nan]], [[1.0]])
    with pytest.raises(ValueError, match="y: 1 rows are expected, as in X, got 2"):
        TorchLoss(module, error, [[1.0]], [[1.0], [2.0]])
    with pytest.raises(ValueError, match="lr: a learning rate"):
        TorchLoss(module, error, [[1.0]], [[1.0]], optimizer=torch.optim.SGD)
    with pytest.raises(ValueError, match="module: a trainable parameter"):
        TorchLoss(torch.nn.ReLU(), error, [[1.0]], [[1.0]])
    loss = TorchLoss(module, error, [[1.0]], [[1.0]], optimizer=torch.optim.SGD, lr=1e300)
    with pytest.raises(ValueError, match=r"lr: 1e\+300 is too long"):
        loss.prox(loss.initial(), 1.0)
    with pytest.raises(ValueError, match="w: a vector of length 2"):
        loss.value([1.0])
