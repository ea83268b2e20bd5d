"""The solve as a differentiable function of PyTorch tensors.

    outputs = sap_islands.torch.solve(client, problem, {"body_contacts.friction": friction})
    outputs.velocity.square().sum().backward()

`backward`, forward mode and `torch.func` (`grad`, `vjp`, `jvp`, `vmap`, `jacrev`, `jacfwd`) work;
what is batched by `vmap` goes to the server as one batch. There are no second derivatives. The
derivatives are those of `sap_islands.derivatives`, with its convention at kinks.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

if importlib.util.find_spec("torch") is None:
    raise ModuleNotFoundError(
        "sap_islands.torch needs PyTorch: pip install 'torch>=2.4'", name="torch"
    )

import torch
from numpy.typing import NDArray

from sap_islands._gradients.solve_function import OUTPUTS, SolveFunction
from sap_islands.client import Client
from sap_islands.options import Options
from sap_islands.problem import Problem
from sap_islands.unsolved_policy import OnUnsolved

__all__ = ["Outputs", "solve"]

Tensors: TypeAlias = tuple[torch.Tensor, ...]


class Outputs(NamedTuple):
    """The arrays of a solution; shapes and units are those of `sap_islands.Solution`."""

    velocity: torch.Tensor
    impulse: torch.Tensor
    contact_velocity: torch.Tensor
    row_impulse: torch.Tensor
    row_velocity: torch.Tensor
    angular_impulse: torch.Tensor
    cost: torch.Tensor


def solve(
    client: Client,
    problem: Problem,
    inputs: Mapping[str, torch.Tensor],
    *,
    options: Options | None = None,
    hold_delassus: bool = False,
    on_unsolved: OnUnsolved = "warn",
) -> Outputs:
    """Solves a problem as a function of some of its inputs.

    Args:
        client: Solves and differentiates.
        problem: The problem; its arrays give the sizes, and the inputs that are not in `inputs`.
        inputs: Tensors by path, as "bodies.mass" or "regularization.sigma", that replace those of
            the problem, in the same shapes and units; a single number or row is repeated.
            "applied_impulse" [nv] is added to the momentum A v* [N s, N m s].
        options: As for `Client.solve`, but the relative tolerance is 1e-10 by default.
        hold_delassus: As for `Client.differentiate`.
        on_unsolved: Whether to "raise", "warn" or "ignore" that an island was not solved or not
            differentiated.

    Returns:
        The outputs, in the data type to which those of the inputs promote, on their device. The
        server computes in double precision.

    Raises:
        InvalidArgument: An input cannot be differentiated or has the wrong shape.
    """
    tensors = {path: torch.as_tensor(tensor) for path, tensor in inputs.items()}
    function = SolveFunction(client, problem, tensors, options, hold_delassus, on_unsolved)
    outputs = _Solve.apply(function, 0, *tensors.values())
    return Outputs(*outputs[: len(OUTPUTS)])


class _Solve(torch.autograd.Function):
    """Outputs, and the velocity in double precision, of inputs with `axes` leading axes."""

    @staticmethod
    def forward(function: SolveFunction, axes: int, *inputs: torch.Tensor) -> Tensors:
        outputs = function.solve(_arrays(inputs), axes)
        dtype, device = _kind(inputs)
        velocity = torch.from_numpy(outputs[0]).to(device, copy=True)
        return (*_tensors(outputs, dtype, device), velocity)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensors) -> None:
        ctx.function, ctx.axes, *tensors = inputs
        ctx.mark_non_differentiable(output[-1])
        ctx.save_for_backward(*tensors, output[-1])
        ctx.save_for_forward(*tensors, output[-1])

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        *inputs, velocity = ctx.saved_tensors
        wanted = tuple(ctx.needs_input_grad[2:])
        tensors = (*inputs, velocity, *cotangents[: len(OUTPUTS)])
        gradients = iter(_PullBack.apply(ctx.function, ctx.axes, wanted, *tensors))
        reduced = [
            _sum_to(next(gradients), tensor.shape[: ctx.axes]) if is_wanted else None
            for tensor, is_wanted in zip(inputs, wanted, strict=True)
        ]
        return (None, None, *reduced)

    @staticmethod
    def jvp(ctx: Any, *tangents: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        *inputs, velocity = ctx.saved_tensors
        directions = [
            torch.zeros_like(tensor) if tangent is None else tangent
            for tensor, tangent in zip(inputs, tangents[2:], strict=True)
        ]
        results = _PushForward.apply(ctx.function, ctx.axes, *inputs, velocity, *directions)
        return (*results, None)

    @staticmethod
    def vmap(
        info: Any, in_dims: Sequence[int | None], function: SolveFunction, axes: int, *inputs: Any
    ) -> tuple[Tensors, tuple[int, ...]]:
        outputs = _Solve.apply(function, axes + 1, *_to_front(inputs, in_dims[2:]))
        return outputs, (0,) * len(outputs)


class _Derivative(torch.autograd.Function):
    """A function that has no derivatives of its own."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensors) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor) -> Any:
        raise NotImplementedError(_NO_SECOND)

    @staticmethod
    def jvp(ctx: Any, *tangents: torch.Tensor) -> Any:
        raise NotImplementedError(_NO_SECOND)


class _PullBack(_Derivative):
    """Gradients of the wanted inputs: inputs, velocity and cotangents in."""

    @staticmethod
    def forward(
        function: SolveFunction, axes: int, wanted: tuple[bool, ...], *tensors: torch.Tensor
    ) -> Tensors:
        inputs, velocity = tensors[: len(wanted)], tensors[len(wanted)]
        cotangents = tensors[len(wanted) + 1 :]
        gradients = function.pull_back(
            _arrays(inputs), _arrays([velocity])[0], _arrays(cotangents), wanted, axes
        )
        kinds = [_kind([tensor]) for tensor, used in zip(inputs, wanted, strict=True) if used]
        return tuple(
            _tensors([gradient], *kind)[0] for gradient, kind in zip(gradients, kinds, strict=True)
        )

    @staticmethod
    def vmap(
        info: Any,
        in_dims: Sequence[Any],
        function: SolveFunction,
        axes: int,
        wanted: tuple[bool, ...],
        *tensors: torch.Tensor,
    ) -> tuple[Tensors, tuple[int, ...]]:
        stacked = _to_front(tensors, in_dims[3:])
        gradients = _PullBack.apply(function, axes + 1, wanted, *stacked)
        return gradients, (0,) * len(gradients)


class _PushForward(_Derivative):
    """Tangents of the outputs: inputs, velocity and tangents of the inputs in."""

    @staticmethod
    def forward(function: SolveFunction, axes: int, *tensors: torch.Tensor) -> Tensors:
        count = len(tensors) // 2
        inputs, velocity, tangents = tensors[:count], tensors[count], tensors[count + 1 :]
        results = function.push_forward(
            _arrays(inputs), _arrays([velocity])[0], _arrays(tangents), axes
        )
        return _tensors(results, *_kind(inputs))

    @staticmethod
    def vmap(
        info: Any, in_dims: Sequence[Any], function: SolveFunction, axes: int, *tensors: Any
    ) -> tuple[Tensors, tuple[int, ...]]:
        results = _PushForward.apply(function, axes + 1, *_to_front(tensors, in_dims[2:]))
        return results, (0,) * len(results)


_NO_SECOND = "sap_islands.torch.solve has no second derivatives"


def _to_front(tensors: Sequence[torch.Tensor], in_dims: Sequence[int | None]) -> list[torch.Tensor]:
    """Moves the batch axis to the front; an axis of size 1 where a tensor has none."""
    return [
        tensor.unsqueeze(0) if dim is None else tensor.movedim(dim, 0)
        for tensor, dim in zip(tensors, in_dims, strict=True)
    ]


def _sum_to(gradient: torch.Tensor, leading: torch.Size) -> torch.Tensor:
    """Sums over the leading axes along which the input has size 1."""
    repeated = [
        axis for axis, size in enumerate(leading) if size == 1 and gradient.shape[axis] != 1
    ]
    return gradient.sum(repeated, keepdim=True) if repeated else gradient


def _kind(tensors: Sequence[torch.Tensor]) -> tuple[torch.dtype, torch.device]:
    """Data type to which floating-point tensors promote, and their device."""
    dtypes = [tensor.dtype for tensor in tensors if tensor.is_floating_point()]
    dtype = dtypes[0] if dtypes else torch.get_default_dtype()
    for other in dtypes[1:]:
        dtype = torch.promote_types(dtype, other)
    return dtype, tensors[0].device if tensors else torch.device("cpu")


def _arrays(tensors: Sequence[torch.Tensor]) -> list[NDArray[Any]]:
    return [tensor.detach().to("cpu", torch.float64).numpy() for tensor in tensors]


def _tensors(
    arrays: Sequence[NDArray[np.float64]], dtype: torch.dtype, device: torch.device
) -> Tensors:
    return tuple(torch.from_numpy(array).to(device, dtype) for array in arrays)
