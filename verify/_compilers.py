"""numba's compiler, without what it does in vain for loops over given arrays.

What it compiles is the same; it is through sooner.
"""

from __future__ import annotations

import operator
from functools import cache
from types import BuiltinFunctionType
from typing import Any

import numba as nb
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, Flags
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.cpu import CPUContext
from numba.core.lowering import Lower
from numba.core.typed_passes import (
    AnnotateTypes,
    IRLegalization,
    NativeLowering,
    NoPythonBackend,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.untyped_passes import (
    DeadBranchPrune,
    FixupArgs,
    GenericRewrites,
    InlineInlinables,
    IRProcessing,
    LiteralPropagationSubPipelinePass,
    ReconstructSSA,
    RewriteSemanticConstants,
    TranslateByteCode,
)


@cache
def compiler(*, small: bool, inner: bool, allocates: bool) -> type[CompilerBase]:
    """Return numba's compiler of one kind of functions; see `verify._compiled.compiled`."""
    lowering = _lowering(small, inner, allocates)
    define = _whole_passes if allocates and not small else _few_passes

    class Compiler(CompilerBase):
        def __init__(self, typing: Any, target: Any, library: Any, args: Any, *rest: Any) -> None:
            return_type, flags, names = rest
            super().__init__(typing, target, library, args, return_type, _Flags(flags), names)

        def define_pipelines(self) -> list[PassManager]:
            """Return the passes."""
            return [define(self.state, small, lowering)]

    # By its name the cache knows it.
    Compiler.__name__ = f"Compiler{'Small' * small}{'Inner' * inner}{'Whole' * allocates}"
    return Compiler


class _Flags(Flags):
    """numba's own, of which all values are asked for thousands of times."""

    def values(self) -> dict[str, Any]:
        """Return the value of each."""
        return _DEFAULTS | self._values


_DEFAULTS = Flags().values()


class _Passes(PassManager):
    """Passes that see to what they need themselves.

    Else numba analyses after each pass which names live how long; it does so once more at the end.
    """

    _ENFORCING = False


def _few_passes(state: Any, small: bool, lowering: type[NativeLowering]) -> PassManager:
    """Return what loops over given arrays need: what is left out finds nothing in them.

    That is for closures, literals, whole arrays and, in small functions that have no arguments that
    are None, branches that are not taken.
    """
    whole = small and nb.types.none not in state.args
    prune = () if whole else (RewriteSemanticConstants, DeadBranchPrune)
    again = () if whole else (DeadBranchPrune,)
    literals = () if small else (DeadBranchPrune, LiteralPropagationSubPipelinePass)
    passes = _Passes("few")
    for each in (
        TranslateByteCode,
        FixupArgs,
        IRProcessing,
        *prune,
        GenericRewrites,
        InlineInlinables,
        *again,
        ReconstructSSA,
        *literals,
        _Inference,
        PreLowerStripPhis,
        IRLegalization,
        AnnotateTypes,
        lowering,
        NoPythonBackend,
    ):
        passes.add_pass(each, each.__name__)
    passes.finalize()
    return passes


def _whole_passes(state: Any, small: bool, lowering: type[NativeLowering]) -> PassManager:
    """Return all of numba's own."""
    passes = _Passes("whole")
    others = {NativeLowering: lowering, NopythonTypeInference: _Inference}
    for each, text in DefaultPassBuilder.define_nopython_pipeline(state).passes:
        passes.add_pass(others.get(each, each), text)
    passes.finalize()
    return passes


class _Remembering:
    """A typing context that finds out once what a function of numba's own makes of its arguments.

    numba asks again for each line in which it is called, and again whenever types of a function's
    names become known, and tries dozens of definitions each time.

    Parameters
    ----------
    context : numba's typing context
    known : dict
        What was found out so far, of functions compiled with the same flags.
    """

    def __init__(self, context: Any, known: dict[Any, Any]) -> None:
        self._context, self._known = context, known

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        """Return the signature of a call."""
        if isinstance(func, nb.types.Dispatcher):
            # For a constant a function would be compiled once more than for a number.
            args = tuple(map(nb.types.unliteral, args))
        function = self._context._lookup_global(func) or func
        if type(function) is not nb.types.Function:
            return self._context.resolve_function_type(func, args, kws)
        return self.signature(function, args, kws)

    def signature(self, function: Any, args: Any, kws: Any) -> Any:
        """Return the signature of a call of a function of numba's own."""
        # A definition that is added to a function makes another one of it.
        key = id(function), tuple(args), tuple(kws.items())
        if key not in self._known:
            found = self._context.resolve_function_type(function, args, kws)
            if found is None:
                return None
            self._known[key] = found, function
        return self._known[key][0]

    def resolve_value_type(self, value: Any) -> Any:
        """Return the type of a constant; an operator's knows what it was asked.

        Operators are never values of names, whose types must be those of numba.
        """
        found = self._context.resolve_value_type(value)
        return _Known.of(found, self) if _is_operator(value) else found

    def resolve_setitem(self, target: Any, index: Any, value: Any) -> Any:
        """Return the signature of what sets an entry."""
        key = "setitem", target, index, value
        if key not in self._known:
            self._known[key] = self._context.resolve_setitem(target, index, value)
        return self._known[key]


def _is_operator(value: Any) -> bool:
    """Say whether a value is one of what stands for operators, entries of arrays among them."""
    return isinstance(value, BuiltinFunctionType) and value.__module__ == operator.add.__module__


class _Known(nb.types.Function):
    """An operator whose signatures are remembered."""

    @staticmethod
    def of(function: Any, context: _Remembering) -> _Known:
        """Return the same operator; there is one type of each, which is left alone."""
        known = object.__new__(_Known)
        known.__dict__.update(vars(function), _function=function, _remembering=context)
        return known

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        """Return the signature of a call."""
        return self._remembering.signature(self._function, args, kws)


# By flags, of which functions depend that are compiled on behalf of calls.
_KNOWN: dict[Any, dict[Any, Any]] = {}


def _remembering(context: Any, flags: Any) -> _Remembering:
    return _Remembering(context, _KNOWN.setdefault(flags.copy(), {}))


@register_pass(mutates_CFG=True, analysis_only=False)
class _Inference(NopythonTypeInference):
    """numba's pass that finds out types."""

    _name = "remembering_type_inference"

    def run_pass(self, state: Any) -> bool:
        """Find them out."""
        context = state.typingctx
        state.typingctx = _remembering(context, state.flags)
        try:
            return bool(super().run_pass(state))
        finally:
            state.typingctx = context


class _SmallLower(Lower):
    """Tells LLVM to optimize for size."""

    def setup_function(self, fndesc: Any) -> None:
        """Begin a function."""
        super().setup_function(fndesc)
        self.function.attributes.add("optsize")


class _Context(CPUContext):
    """numba's own, which does not look for what no array here has.

    Arrays that are no NumPy's may say what they are made of. numba asks all of them each time that
    code for one is written, and then looks whether new definitions have come in.
    """

    def get_function(self, fn: Any, sig: Any, _firstcall: bool = True) -> Any:
        """Return what writes the code of a function."""
        if fn == "__array__":
            raise NotImplementedError
        return super().get_function(fn, sig, _firstcall)


@cache
def _lowering(small: bool, inner: bool, allocates: bool) -> type[NativeLowering]:
    """Return numba's pass that writes code for LLVM, of one kind of functions."""
    lower = _SmallLower if small else Lower

    class Lowering(NativeLowering):
        _name = f"native_lowering{'_small' * small}{'_inner' * inner}{'_whole' * allocates}"

        @property
        def lowering_class(self) -> type[Lower]:
            """What writes it."""
            return lower

        def run_pass(self, state: Any) -> bool:
            """Write it."""
            library = _InnerLibrary if inner else _OuterLibrary
            # A copy, of this function alone.
            state.targetctx.__class__ = _Context
            state.targetctx.typing_context = _remembering(state.typingctx, state.flags)
            state.library = library(state.targetctx.codegen(), state.func_id.func_qualname)
            if not inner:
                state.library.enable_object_caching()
            return bool(super().run_pass(state))

    register_pass(mutates_CFG=True, analysis_only=False)(Lowering)
    return Lowering


class _OuterLibrary(JITCodeLibrary):
    """Code that is executed: what Python calls, and all that goes into it."""

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self._unpacking = False

    def add_ir_module(self, ir_module: Any) -> None:
        """Take a function, or what unpacks the arguments that Python calls it with."""
        self._unpacking = ir_module.name == "wrapper"
        super().add_ir_module(ir_module)

    def _optimize_functions(self, ll_module: Any) -> None:
        # What unpacks is long, and goes from one end to the other: once more is in vain.
        if self._unpacking:
            ll_module.data_layout = self._codegen._data_layout
        else:
            super()._optimize_functions(ll_module)


class _NoEnvironment:
    """Where numba would put what a function needs of Python."""

    def set_env(self, name: str, environment: Any) -> None:
        """Leave it out."""


class _InnerLibrary(JITCodeLibrary):
    """Code that goes into its callers: there it is optimized, and made machine code, for once.

    Else that would be done at each level, and all but the last one of it would be thrown away.
    """

    @property
    def codegen(self) -> Any:
        """Nothing is executed from here."""
        return _NoEnvironment()

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return the address of a function that is not there."""
        self._ensure_finalized()
        return 0
