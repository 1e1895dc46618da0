"""The one decorator of compiled functions, whose cache knows all that is compiled into them.

numba keeps compiled code on disk and looks at the file of a function to see whether it is still
valid. What the function calls in other files, and the constants that it takes from there, are
compiled into it, too; changes of those go unnoticed, and so do new fields of the named tuples that
it is given: old code would run, or read the wrong field. Here the key of the cache has all of this
in it. It is made when code is looked up, not when a function is defined: what it calls may be
defined later in its module. Python's own version and numba's are in numba's key already.
"""

from __future__ import annotations

import builtins
import hashlib
import sys
import types
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, overload

import numba as nb
import numpy as np
from numba.core import event
from numba.core.caching import FunctionCache
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic

from verify._compilation import CLOCK, CompilationClock
from verify._compilers import compiler

#: Their code is the same as long as their versions are, or those of Python and numba.
_RELEASED = frozenset({"builtins", "cmath", "math", "numba", "numpy", "operator"})

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), np.generic, np.dtype)

#: Of a value that may lead anywhere: code is then valid as long as no file of the packages changes.
_UNKNOWN = "unknown"


@overload
def compiled(function: Callable[..., Any]) -> Any: ...


@overload
def compiled(
    *,
    parallel: bool = ...,
    fastmath: bool | frozenset[str] = ...,
    nogil: bool = ...,
    inline: str = ...,
    error_model: str = ...,
    allocates: bool = ...,
    inner: bool = ...,
    small: bool = ...,
) -> Callable[[Callable[..., Any]], Any]: ...


def compiled(
    function: Callable[..., Any] | None = None,
    *,
    parallel: bool = False,
    fastmath: bool | frozenset[str] = False,
    nogil: bool = False,
    inline: str = "never",
    error_model: str = "numpy",
    allocates: bool = True,
    inner: bool = False,
    small: bool = False,
) -> Any:
    """Compile a function when it is called, and keep the result on disk.

    One that Python calls returns numbers, and writes arrays that it is given: to hand out an array
    or a named tuple numba runs Python, where Ctrl-C that has come meanwhile ends the process.

    Parameters
    ----------
    parallel, fastmath, nogil
        As in `numba.njit`.
    inline : str
        "always" puts the function into the one that calls it, before that is compiled. What is
        called in one place compiles sooner that way: otherwise it is optimized twice.
    error_model : str
        Division by zero gives infinity or NaN, as in NumPy; with "python" it raises an exception.
    allocates : bool
        False: the function makes no arrays, and need not count references to those it is given.
        It compiles sooner, and local names of arrays cost nothing.
    inner : bool
        Only compiled functions call this one; Python cannot. That spares what unpacks arguments,
        and a file of its own: it is in those of its callers.
    small : bool
        Optimize for size: loops are not unrolled, and go one entry at a time. For plain and short
        loops over given arrays, which compile in half the time that way and are no slower.
    """
    options: dict[str, Any] = {
        "parallel": parallel,
        "fastmath": fastmath if isinstance(fastmath, bool) else set(fastmath),
        "nogil": nogil,
        "inline": inline,
        "error_model": error_model,
        # Nothing in C calls these functions.
        "no_cfunc_wrapper": True,
        "no_cpython_wrapper": inner,
        "_nrt": allocates,
        # Called, it might be another copy that is loaded already: that of a caller compiled in this
        # process, optimized otherwise, whose last digits differ from those of the one on disk.
        "forceinline": inner,
    }
    if not parallel:
        options["pipeline_class"] = compiler(small=small, inner=inner, allocates=allocates)

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = nb.njit(**options)(function)
        if not inner:
            dispatcher._cache = _Cache(dispatcher)
        return dispatcher

    return decorate if function is None else decorate(function)


def intrinsic(function: Callable[..., Any]) -> Any:
    """Make a function that writes code for LLVM itself, as `numba.extending.intrinsic` does.

    All that it uses of these packages is in its own file: that is what stands for it in the key of
    the cache.
    """
    return nb.extending.intrinsic(function)


class Listener(event.Listener):
    """Stops a clock while numba compiles functions of some kind.

    Parameters
    ----------
    clock : CompilationClock
    ours : callable
        Says whether a dispatcher is of that kind: users' own functions are no matter of ours.
    """

    def __init__(self, clock: CompilationClock, ours: Callable[[Any], bool]) -> None:
        self._clock, self._ours = clock, ours

    def on_start(self, event: Any) -> None:
        """Take note that numba begins."""
        if self._ours(event.data["dispatcher"]):
            self._clock.begin()

    def on_end(self, event: Any) -> None:
        """Take note that numba is through, or has failed."""
        if self._ours(event.data["dispatcher"]):
            self._clock.end()


class _Cache(FunctionCache):
    """Compiled code on disk, by its signature and by all that was compiled into it."""

    def __init__(self, dispatcher: Any) -> None:
        super().__init__(dispatcher.py_func)
        self._dispatcher = dispatcher

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        fields = tuple(_fields_of(getattr(sig, "args", sig)))
        return (*super()._index_key(sig, codegen), fingerprint(self._dispatcher), fields)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write what was just compiled, which is part of compiling it."""
        with CLOCK.compiling():
            super().save_overload(sig, data)


event.register("numba:compile", Listener(CLOCK, lambda f: isinstance(f._cache, _Cache)))


def fingerprint(dispatcher: Any) -> str:
    """Return a hash of all that is compiled into a function, whatever its arguments are."""
    walk = _Walk()
    walk.visit("", dispatcher)
    return hashlib.sha256(
        "\0".join([np.__version__, *walk.parts, *walk.files()]).encode()
    ).hexdigest()


def _fields_of(arguments: Iterable[Any]) -> Iterator[tuple[str, ...]]:
    """Fields of the named tuples among the types of arguments, which numba tells by their names."""
    for argument in arguments:
        if isinstance(argument, nb.types.BaseNamedTuple):
            yield argument.instance_class._fields
        if isinstance(argument, nb.types.BaseTuple):
            yield from _fields_of(argument)
        elif isinstance(argument, nb.types.Optional):
            yield from _fields_of([argument.type])


class _Walk:
    """A walk from a function to all that it can reach, in the same order in every process.

    Attributes
    ----------
    parts : list of str
        Names and descriptions of what was found. What is found again is a number.
    """

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._numbers: dict[int, int] = {}
        self._packages = {__name__.split(".")[0]}

    def visit(self, name: str, value: Any) -> None:
        """Describe a value, and what it leads to."""
        if isinstance(value, _PLAIN):
            self.parts.append(f"{name} = {type(value).__qualname__} {value!r}")
        elif id(value) in self._numbers:
            self.parts.append(f"{name} = {self._numbers[id(value)]}")
        else:
            self._numbers[id(value)] = len(self._numbers)
            description, reached = _look_into(value)
            if description == _UNKNOWN or isinstance(value, types.FunctionType):
                self._packages.add(_package_of(value))
            self.parts.append(f"{name} = {description}")
            for inner in reached:
                self.visit(*inner)

    def files(self) -> list[str]:
        """Return hashes of all files of the packages, if something may lead anywhere."""
        known = all(not part.endswith(f"= {_UNKNOWN}") for part in self.parts)
        return [] if known else [_files(package) for package in sorted(self._packages)]


def _look_into(value: Any) -> tuple[str, Iterable[tuple[str, Any]]]:
    """Describe a value, and return the values that it leads to, with their names."""
    if isinstance(value, Dispatcher):
        options = sorted((name, _plain(option)) for name, option in value.targetoptions.items())
        compiler = vars(value)["_compiler"].pipeline_class.__name__
        return f"compiled {options} {compiler}", [("", value.py_func)]
    if isinstance(value, _Intrinsic):
        return f"intrinsic {value._defn.__qualname__} {_files(value._defn.__module__)}", []
    if isinstance(value, Enum):
        return f"member {type(value).__qualname__}", [(value.name, value.value)]
    if isinstance(value, tuple):
        fields = getattr(value, "_fields", map(str, range(len(value))))
        return type(value).__qualname__, zip(fields, value, strict=True)
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return f"array {value.dtype!r} {value.shape} {value.tobytes().hex()}", []
    if _is_released(value):
        return f"{type(value).__name__} {getattr(value, '__name__', value)}", []
    if isinstance(value, types.FunctionType):
        return _code(value.__code__, value.__doc__), _reached(value)
    if isinstance(value, type) and issubclass(value, Enum):
        return f"class {value.__qualname__}", value.__members__.items()
    if isinstance(value, type) and hasattr(value, "_fields") and hasattr(value, "_field_defaults"):
        return f"class {value.__qualname__} {value._fields}", value._field_defaults.items()
    return _UNKNOWN, []


def _is_released(value: Any) -> bool:
    """Say whether a value is a module, function or type of Python, NumPy or numba."""
    if isinstance(value, nb.types.Type):
        return True
    if isinstance(value, np.ufunc):
        return getattr(np, value.__name__, None) is value
    # Of other objects the class says little about what they hold.
    named = isinstance(value, types.ModuleType) or hasattr(value, "__qualname__")
    return named and _package_of(value) in _RELEASED


def _package_of(value: Any) -> str:
    """Return the name of the top-level package that a value comes from."""
    module = value if isinstance(value, types.ModuleType) else sys.modules.get(value.__module__)
    return str(getattr(module, "__name__", "")).split(".")[0]


def _reached(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Values that a function takes from outside: defaults, closure, globals, modules' attributes.

    Names are not told from attributes in a function's code: an attribute that has the name of a
    global counts as that, too, which does no harm.
    """
    yield from (("default", value) for value in function.__defaults__ or ())
    yield from (function.__kwdefaults__ or {}).items()
    yield from (("closure", cell.cell_contents) for cell in function.__closure__ or ())
    names = sorted({name for code in _codes(function.__code__) for name in code.co_names})
    scopes: list[Mapping[str, Any]] = [ChainMap(function.__globals__, vars(builtins))]
    for scope in scopes:
        for name in names:
            if name not in scope:
                continue
            value = scope[name]
            if not isinstance(value, types.ModuleType) or _is_released(value):
                yield name, value
            elif vars(value) not in scopes:
                scopes.append(vars(value))


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """Return a function's code, and that of the functions and comprehensions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _code(code: types.CodeType, docstring: str | None = None) -> str:
    """Describe what code does: all but its place in the file, and its docstring."""
    # The first constant of a function is its docstring, or None in its place.
    documented = bool(code.co_consts) and code.co_consts[0] in (None, docstring)
    constants = code.co_consts[documented:]
    return " ".join(
        [
            code.co_code.hex(),
            code.co_exceptiontable.hex(),
            f"{code.co_argcount} {code.co_posonlyargcount} {code.co_kwonlyargcount}",
            f"{code.co_flags} {code.co_names} {code.co_varnames}",
            f"{code.co_freevars} {code.co_cellvars}",
            *(_plain(constant) for constant in constants),
        ]
    )


def _plain(value: Any) -> str:
    """Describe a constant in code or an option, the same in every process."""
    if isinstance(value, types.CodeType):
        return _code(value)
    if isinstance(value, (set, frozenset)):
        return f"set {sorted(map(_plain, value))}"
    if isinstance(value, tuple):
        return f"tuple {[_plain(entry) for entry in value]}"
    return repr(value)


@cache
def _files(package: str) -> str:
    """Return a hash of all files of a package, or of the one file of a module."""
    path = Path(str(getattr(sys.modules.get(package), "__file__", None)))
    digest = hashlib.sha256()
    for file in sorted(path.parent.rglob("*.py")) if path.name == "__init__.py" else [path]:
        digest.update(file.read_bytes() if file.is_file() else b"")
    return digest.hexdigest()
