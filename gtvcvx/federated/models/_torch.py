"""Modules of PyTorch as local models (extra ``torch``)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray, real_array
from gtvcvx._extras import extra_module
from gtvcvx.federated.models._checks import count, positive, vector
from gtvcvx.federated.models._descent import STEPS, ProximalObjective, backtracked_steps


class TorchLoss:
    """Training error of a module of PyTorch as a function of one vector of its parameters.

    ``L(w) = loss(module(X; w), y)``. ``w`` is the trainable parameters, each row by row, in the
    order of ``module.named_parameters()``, in float64; what is frozen (``requires_grad`` False)
    stays as it is. Assumed not to be convex.

    The module is copied, turned to float64 and to evaluation mode: dropout is off and batch
    normalization uses its stored statistics, which are not updated. So value, gradient and prox are
    functions of their arguments alone, and nothing but parameters would have to be exchanged.

    Parameters
    ----------
    module : torch.nn.Module
        Called with X.
    loss : callable
        ``loss(output, y)``, a tensor of one number: ``torch.nn.CrossEntropyLoss()``, say.
    X : array_like of shape (m, ...)
        Inputs; numbers become float64.
    y : array_like of shape (m, ...)
        Targets; integers (classes) become int64, other numbers float64.
    steps : int
        Gradient steps of `prox`; 40, as in the notebook of the authors of [GTV].
    optimizer : callable, optional
        ``optimizer(parameters, lr=lr)``: a class of ``torch.optim``, made anew for each `prox`.
        None is gradient descent whose steps are found by halving, as in `TwoLayerNetwork`.
    lr : float, optional
        Learning rate of the optimizer, needed with it and refused without.

    Raises
    ------
    ImportError
        PyTorch is not installed; the message names the extra.
    TypeError, ValueError
        Naming the argument.

    Notes
    -----
    An object can be pickled, for a process of its own, if module, loss and optimizer can: classes
    at the top of a file can, lambdas cannot.
    """

    convex = False

    def __init__(
        self,
        module: Any,
        loss: Callable[[Any, Any], Any],
        X: ArrayLike,
        y: ArrayLike,
        *,
        steps: int = STEPS,
        optimizer: Callable[..., Any] | None = None,
        lr: float | None = None,
    ) -> None:
        torch = _torch()
        if not isinstance(module, torch.nn.Module):
            raise TypeError(f"module: a torch.nn.Module is expected, got {type(module).__name__}")
        if not callable(loss):
            raise TypeError(f"loss: a function of output and y is expected, got {loss!r}")
        self._module = copy.deepcopy(module).double().eval()
        self._loss = loss
        self._X, self._y = _finite(X, "X"), _targets(y)
        if len(self._X) != len(self._y):
            raise ValueError(f"y: {len(self._X)} rows are expected, as in X, got {len(self._y)}")
        self._shapes = {
            name: tuple(p.shape) for name, p in self._module.named_parameters() if p.requires_grad
        }
        if not self._shapes:
            raise ValueError("module: a trainable parameter at least is expected")
        self.steps = count(steps, "steps")
        if (optimizer is None) != (lr is None):
            raise ValueError("lr: a learning rate is expected with an optimizer, and only then")
        self.optimizer = optimizer
        self.lr = None if lr is None else positive(lr, "lr")
        self._error(self._parameters(self.initial()))

    @property
    def dim(self) -> int:
        """Number d of trainable parameters."""
        return sum(int(np.prod(shape)) for shape in self._shapes.values())

    def initial(self) -> FloatArray:
        """Trainable parameters of the module as it was given, shape (d,)."""
        own = dict(self._module.named_parameters())
        return _flat([own[name] for name in self._shapes])

    def module_at(self, w: ArrayLike) -> Any:
        """Copy of the module, in float64 and evaluation mode, with the parameters w (d,).

        Parameters
        ----------
        w : array_like of shape (d,)
        """
        module = copy.deepcopy(self._module)
        with _torch().no_grad():
            own = dict(module.named_parameters())
            for name, tensor in self._parameters(vector(w, "w", self.dim)).items():
                own[name].copy_(tensor)
        return module

    def predict(self, w: ArrayLike, X: ArrayLike) -> FloatArray:
        """Output of the module for inputs X (m, ...).

        Parameters
        ----------
        w : array_like of shape (d,)
        X : array_like of shape (m, ...)
        """
        torch = _torch()
        parameters = self._parameters(vector(w, "w", self.dim))
        with torch.no_grad():
            output = self._output(parameters, _finite(X, "X"))
        return np.asarray(output.numpy(), dtype=np.float64)

    def value(self, w: ArrayLike) -> float:
        """Training error L(w); +inf where it is no finite number."""
        return self._value(vector(w, "w", self.dim))

    def gradient(self, w: ArrayLike) -> FloatArray:
        """Gradient of L at w by automatic differentiation, shape (d,).

        Raises
        ------
        ValueError
            It is not finite at w.
        """
        return self._gradient(vector(w, "w", self.dim))

    def prox(self, v: ArrayLike, tau: float) -> FloatArray:
        """Do steps of the optimizer on ``L(z) + ||z - v||^2 / (2 tau)`` from z = v, shape (d,).

        Parameters
        ----------
        v : array_like of shape (d,)
        tau : float
            > 0.

        Raises
        ------
        ValueError
            The learning rate is too long: parameters are no finite numbers any more.
        """
        start, tau = vector(v, "v", self.dim), positive(tau, "tau")
        if self.optimizer is not None:
            return self._optimized(start, tau)
        objective = ProximalObjective(self._value, self._gradient, start, tau)
        return backtracked_steps(objective, self.steps)

    def _parameters(self, w: FloatArray, trainable: bool = False) -> dict[str, Any]:
        """Return tensors of their own, by name, that w is cut into."""
        torch = _torch()
        ends = np.cumsum([int(np.prod(shape)) for shape in self._shapes.values()])
        parts = np.split(w, ends[:-1])
        return {
            name: torch.tensor(part.reshape(shape), requires_grad=trainable)
            for (name, shape), part in zip(self._shapes.items(), parts, strict=True)
        }

    def _output(self, parameters: dict[str, Any], X: FloatArray) -> Any:
        torch = _torch()
        return torch.func.functional_call(self._module, parameters, (torch.tensor(X),))

    def _error(self, parameters: dict[str, Any]) -> Any:
        error = self._loss(self._output(parameters, self._X), _torch().tensor(self._y))
        if not _torch().is_tensor(error) or error.numel() != 1:
            raise TypeError("loss: a tensor of one number is expected")
        return error.reshape(())

    def _value(self, w: FloatArray) -> float:
        with _torch().no_grad():
            value = float(self._error(self._parameters(w)))
        return value if np.isfinite(value) else np.inf

    def _gradient(self, w: FloatArray) -> FloatArray:
        parameters = list((named := self._parameters(w, trainable=True)).values())
        slopes = _torch().autograd.grad(
            self._error(named), parameters, allow_unused=True, materialize_grads=True
        )
        gradient = _flat(slopes)
        if not np.isfinite(gradient).all():
            raise ValueError("w: the gradient of the module is not finite")
        return gradient

    def _optimized(self, v: FloatArray, tau: float) -> FloatArray:
        named, at = self._parameters(v, trainable=True), self._parameters(v)
        assert self.optimizer is not None
        optimizer = self.optimizer(list(named.values()), lr=self.lr)

        def closure() -> Any:
            optimizer.zero_grad()
            # In the graph of differentiation: on detached data this term would have no gradient.
            away = sum(((named[name] - at[name]) ** 2).sum() for name in named)
            objective = self._error(named) + away / (2 * tau)
            objective.backward()
            return objective

        for k in range(self.steps):
            optimizer.step(closure)
            z = _flat(named.values())
            if not np.isfinite(z).all():
                raise ValueError(f"lr: {self.lr} is too long, overflow at step {k + 1}")
        return z


def _torch() -> Any:
    return extra_module("torch", "torch", "modules of PyTorch")


def _flat(tensors: Any) -> FloatArray:
    return np.concatenate([t.detach().numpy().astype(np.float64).ravel() for t in tensors])


def _finite(values: ArrayLike, name: str) -> FloatArray:
    array = real_array(values, name)
    if array.ndim < 1 or not len(array):
        raise ValueError(f"{name}: a row at least is expected, got shape {array.shape}")
    if not np.isfinite(array).all():
        where = tuple(int(k) for k in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{name}: entry {where} is {array[where]}, a finite number is expected")
    return array.copy()


def _targets(y: ArrayLike) -> Any:
    array = _finite(y, "y")
    return array.astype(np.int64) if np.asarray(y).dtype.kind in "iu" else array
