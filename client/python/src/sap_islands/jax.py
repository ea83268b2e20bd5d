"""The solve as a differentiable function of JAX arrays.

    def loss(friction):
        outputs = sap_islands.jax.solve(client, problem, {"body_contacts.friction": friction})
        return jnp.sum(outputs.velocity**2)

    jax.grad(loss)(0.5)

`solve` is differentiable in reverse mode (`grad`, `vjp`, `jacrev`), `solve_jvp` in forward mode
(`jvp`, `jacfwd`): a function in JAX has a rule for one of them. Both work under `jit` and `vmap`;
what is batched goes to the server as one batch. There are no second derivatives. The derivatives
are those of `sap_islands.derivatives`, with its convention at kinks.

JAX has single precision unless `jax_enable_x64` is set. Then the velocity at which to differentiate
is rounded on its way, and the server refines it.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

if importlib.util.find_spec("jax") is None:
    raise ModuleNotFoundError("sap_islands.jax needs JAX: pip install 'jax>=0.4.36'", name="jax")

import jax
import jax.numpy as jnp
from numpy.typing import NDArray

from sap_islands._gradients.solve_function import SolveFunction
from sap_islands.client import Client
from sap_islands.options import Options
from sap_islands.problem import Problem
from sap_islands.unsolved_policy import OnUnsolved

__all__ = ["Outputs", "solve", "solve_jvp"]

Arrays: TypeAlias = tuple[jax.Array, ...]


class Outputs(NamedTuple):
    """The arrays of a solution; shapes and units are those of `sap_islands.Solution`."""

    velocity: jax.Array
    impulse: jax.Array
    contact_velocity: jax.Array
    row_impulse: jax.Array
    row_velocity: jax.Array
    angular_impulse: jax.Array
    cost: jax.Array


def solve(
    client: Client,
    problem: Problem,
    inputs: Mapping[str, Any],
    *,
    options: Options | None = None,
    hold_delassus: bool = False,
    on_unsolved: OnUnsolved = "warn",
) -> Outputs:
    """Solves a problem as a function of some of its inputs, for reverse mode.

    Args:
        client: Solves and differentiates.
        problem: The problem; its arrays give the sizes, and the inputs that are not in `inputs`.
        inputs: Arrays by path, as "bodies.mass" or "regularization.sigma", that replace those of
            the problem, in the same shapes and units; a single number or row is repeated.
            "applied_impulse" [nv] is added to the momentum A v* [N s, N m s].
        options: As for `Client.solve`, but the relative tolerance is 1e-10 by default.
        hold_delassus: As for `Client.differentiate`.
        on_unsolved: Whether to "raise", "warn" or "ignore" that an island was not solved or not
            differentiated.

    Returns:
        The outputs, in the data type to which those of the inputs promote. The server computes in
        double precision.

    Raises:
        InvalidArgument: An input cannot be differentiated or has the wrong shape.
        jax.errors.JaxRuntimeError: The call failed; the message has the error of the client.
    """
    function = SolveFunction(client, problem, inputs, options, hold_delassus, on_unsolved)
    bridge = _Bridge(function, inputs)

    @jax.custom_vjp
    def primal(*arrays: jax.Array) -> Arrays:
        return bridge.solve(arrays)

    def forward(*arrays: jax.Array) -> tuple[Arrays, tuple[Arrays, jax.Array]]:
        outputs = bridge.solve(arrays)
        return outputs, (arrays, outputs[0])

    def backward(saved: tuple[Arrays, jax.Array], cotangents: Arrays) -> Arrays:
        return bridge.pull_back(*saved, cotangents)

    primal.defvjp(forward, backward)
    return Outputs(*primal(*bridge.arrays))


def solve_jvp(
    client: Client,
    problem: Problem,
    inputs: Mapping[str, Any],
    *,
    options: Options | None = None,
    hold_delassus: bool = False,
    on_unsolved: OnUnsolved = "warn",
) -> Outputs:
    """Solves a problem as a function of some of its inputs, for forward mode; see `solve`."""
    function = SolveFunction(client, problem, inputs, options, hold_delassus, on_unsolved)
    bridge = _Bridge(function, inputs)

    @jax.custom_jvp
    def primal(*arrays: jax.Array) -> Arrays:
        return bridge.solve(arrays)

    @primal.defjvp
    def push_forward(primals: Arrays, tangents: Arrays) -> tuple[Arrays, Arrays]:
        outputs = bridge.solve(primals)
        return outputs, bridge.push_forward(primals, outputs[0], tangents)

    return Outputs(*primal(*bridge.arrays))


class _Bridge:
    """Calls a `SolveFunction` from traced functions.

    A callback gets each array with the leading axes by which it is batched; along those where it
    is not, it has size 1.
    """

    def __init__(self, function: SolveFunction, inputs: Mapping[str, Any]) -> None:
        self._function = function
        arrays = [jnp.asarray(array) for array in inputs.values()]
        dtype = jnp.result_type(*arrays) if arrays else jnp.result_type(float)
        if not jnp.issubdtype(dtype, jnp.floating):
            dtype = jnp.result_type(float)
        self.arrays = tuple(array.astype(dtype) for array in arrays)
        self._dtype = dtype
        self._outputs = tuple(_array_type(shape, dtype) for shape in function.output_shapes)

    def solve(self, inputs: Arrays) -> Arrays:
        def call(*arrays: Any) -> tuple[NDArray[Any], ...]:
            axes = np.ndim(arrays[0]) - inputs[0].ndim if arrays else 0
            return self._cast(self._function.solve(_numpy(arrays), axes))

        result: Arrays = _callback(call, self._outputs, *inputs)
        return result

    def pull_back(self, inputs: Arrays, velocity: jax.Array, cotangents: Arrays) -> Arrays:
        count = len(inputs)

        def call(*arrays: Any) -> tuple[NDArray[Any], ...]:
            axes = np.ndim(arrays[count]) - 1
            values = _numpy(arrays)
            gradients = self._function.pull_back(
                values[:count], values[count], values[count + 1 :], [True] * count, axes
            )
            return self._cast(gradients)

        results = tuple(_array_type(array.shape, self._dtype) for array in inputs)
        result: Arrays = _callback(call, results, *inputs, velocity, *cotangents)
        return result

    def push_forward(self, inputs: Arrays, velocity: jax.Array, tangents: Arrays) -> Arrays:
        count = len(inputs)

        def call(*arrays: Any) -> tuple[NDArray[Any], ...]:
            axes = np.ndim(arrays[count]) - 1
            values = _numpy(arrays)
            results = self._function.push_forward(
                values[:count], values[count], values[count + 1 :], axes
            )
            return self._cast(results)

        result: Arrays = _callback(call, self._outputs, *inputs, velocity, *tangents)
        return result

    def _cast(self, arrays: Sequence[NDArray[Any]]) -> tuple[NDArray[Any], ...]:
        return tuple(array.astype(self._dtype) for array in arrays)


def _callback(call: Any, results: Any, *arrays: jax.Array) -> Any:
    return jax.pure_callback(call, results, *arrays, vmap_method="expand_dims")


def _array_type(shape: tuple[int, ...], dtype: Any) -> Any:
    return jax.ShapeDtypeStruct(shape, dtype)  # type: ignore[no-untyped-call]  # as JAX has it


def _numpy(arrays: Sequence[Any]) -> list[NDArray[Any]]:
    return [np.asarray(array) for array in arrays]
