"""Array types, and branches and loops that work both in Python and in an engine that traces.

A traced value has a shape but no numbers, so an `if` of Python cannot use it.
"""

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]
"""Numbers in float32 or float64."""


Parts = tuple[Any, ...]


def array_namespace(array: Any) -> Any:
    """The module with the functions for an array, like `fkl.contract.world.Common.xp` for the engine's arrays."""
    own = getattr(array, "__array_namespace__", None)  # arrays of numpy 1 do not have this attribute
    return np if own is None else own()


def is_traced(value: Any) -> bool:
    """Whether a value is an array that an engine traces, or one of the engine's own arrays."""
    return type(value).__module__.partition(".")[0] in ("jax", "jaxlib")


def normal_quantile(probability: Any) -> Any:
    """Quantiles of N(0, 1)."""
    return _special_functions(is_traced(probability)).ndtri(probability)


def logistic_function(value: Any) -> Any:
    """1 / (1 + exp(-value))."""
    return _special_functions(is_traced(value)).expit(value)


@cache
def _special_functions(of_jax: bool) -> Any:
    """The module of special functions, which takes longer to import than all of fkl's own modules."""
    return import_module("jax.scipy.special" if of_jax else "scipy.special")


def stable_order(values: Any) -> Any:
    """Indices that sort the last axis in ascending order; equal entries keep their order."""
    stable = {} if is_traced(values) else {"kind": "stable"}  # JAX's sort is always stable
    return array_namespace(values).argsort(values, axis=-1, **stable)


def of_each(work: Callable[..., Any], *values: Any) -> Any:
    """The results of `work` for each entry along the second axis of arrays (n, K, ...), stacked along a first axis."""
    if any(map(is_traced, values)):  # a Python loop would be traced as one copy of its body per entry
        from jax import lax

        moved = tuple(array_namespace(one).moveaxis(one, 1, 0) for one in values)
        return lax.map(lambda entry: work(*(one[:, None] for one in entry)), moved)
    return np.stack([work(*(one[:, k : k + 1] for one in values)) for k in range(values[0].shape[1])])


def fill_missing(value: Any, other: Any) -> Any:
    """A nested value (dataclasses, tuples, lists, dictionaries) with each None replaced by the entry of `other`."""
    if value is None or isinstance(value, np.ndarray) or is_traced(value):
        return other if value is None else value
    inside = map(fill_missing, _inner_values(value), _inner_values(other))
    return _with_inner_values(value, list(inside))


def known_everywhere(flags: Any) -> bool:
    """Whether all flags are known to be set."""
    return not is_traced(flags) and bool(flags.all())


def choose_branch(condition: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """The result of `then` if a condition holds, else of `otherwise`; both results have the same structure."""
    if not is_traced(condition):
        return then() if condition else otherwise()
    from jax import lax

    made: list[Any] = []

    def arrays(make: Callable[[], Any]) -> Parts:
        made.append(make())
        return arrays_of(made[-1])

    chosen = lax.cond(condition, lambda: arrays(then), lambda: arrays(otherwise))
    return with_arrays(made[0], chosen)


def repeat_until(done: Callable[[Any], Any], step: Callable[[Any], Any], value: Any, most: int) -> Any:
    """Apply `step` to a value until `done` holds, but at most `most` times."""
    if not any(map(is_traced, arrays_of(value))):
        for _ in range(most):
            if done(value):
                break
            value = step(value)
        return value
    from jax import lax

    def goes_on(counted: tuple[Any, Parts]) -> Any:
        count, state = counted
        return (count < most) & ~done(with_arrays(value, state))

    def go_on(counted: tuple[Any, Parts]) -> tuple[Any, Parts]:
        count, state = counted
        return count + 1, arrays_of(step(with_arrays(value, state)))

    return with_arrays(value, lax.while_loop(goes_on, go_on, (0, arrays_of(value)))[1])


def arrays_of(value: Any) -> Parts:
    """The arrays of a state, or of any object of dataclasses, tuples, lists and dictionaries."""
    if isinstance(value, np.ndarray) or is_traced(value):
        return (value,)
    return tuple(part for inner in _inner_values(value) for part in arrays_of(inner))


def with_arrays(value: Any, others: Any) -> Any:
    """Replace the arrays of an object by others, in the order of `arrays_of`."""
    replacements = iter(others)
    made = _with_next_arrays(value, replacements)
    assert next(replacements, None) is None, "more arrays than places"
    return made


def _inner_values(value: Any) -> list[Any]:
    if is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, field.name) for field in fields(value)]
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, tuple | list) else []


def _with_next_arrays(value: Any, found: Any) -> Any:
    if isinstance(value, np.ndarray) or is_traced(value):
        return next(found)
    return _with_inner_values(value, [_with_next_arrays(inner, found) for inner in _inner_values(value)])


def _with_inner_values(value: Any, inside: list[Any]) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **dict(zip((field.name for field in fields(value)), inside, strict=True)))
    if isinstance(value, dict):
        return dict(zip(value, inside, strict=True))
    if isinstance(value, tuple | list):
        return type(value)(*inside) if hasattr(value, "_fields") else type(value)(inside)
    return value
