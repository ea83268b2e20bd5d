"""The solution of a problem as a function of some of its inputs, with derivatives.

The part of `sap_islands.torch` and `sap_islands.jax` that is independent of both. Arrays have
leading axes, of the same number in all arrays of a call; along each, an array has the size of the
batch or 1. Evaluations that differ only in cotangents or tangents share a request and its factor.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sap_islands._arrays.contacts import BodyContacts, Contacts
from sap_islands._gradients import momentum
from sap_islands._gradients.input_arrays import APPLIED_IMPULSE, Input, get, with_inputs
from sap_islands.arrays import FloatArray
from sap_islands.client import Client
from sap_islands.derivatives import (
    Cotangent,
    Derivatives,
    DifferentiateRequest,
    Gradient,
    Tangent,
)
from sap_islands.errors import Internal, InvalidArgument, SapError, value_of
from sap_islands.options import Options
from sap_islands.problem import Problem
from sap_islands.solution import Solution
from sap_islands.unsolved_policy import (
    OnUnsolved,
    check_on_unsolved,
    report_inaccurate,
    report_unsolved,
)

OUTPUTS = tuple(field.name for field in fields(Tangent))
RELATIVE_TOLERANCE = 1e-10
_DYNAMICS = (
    "trees.dynamics_matrix",
    "trees.coupling_block",
    "bodies.mass",
    "bodies.inertia",
)
_V_STAR = ("trees.free_motion_velocity", "bodies.free_motion_velocity")

Index: TypeAlias = tuple[int, ...]
Arrays: TypeAlias = Sequence[NDArray[Any]]


@dataclass
class _Point:
    """A problem with the given inputs, and the evaluations of a batch that are at this problem.

    Attributes:
        problem: The problem.
        velocity_change: [nv] what the applied impulse has added to v*; None: it is no input.
        where: Indices of the evaluations.
    """

    problem: Problem
    velocity_change: FloatArray | None
    where: list[Index]


class SolveFunction:
    """The solution of a problem as a function of some of its inputs."""

    def __init__(
        self,
        client: Client,
        problem: Problem,
        inputs: Mapping[str, Any],
        options: Options | None = None,
        hold_delassus: bool = False,
        on_unsolved: OnUnsolved = "warn",
    ) -> None:
        """Prepares the inputs.

        Args:
            client: Solves and differentiates.
            problem: Has the inputs that are not given, and the sizes of all.
            inputs: By path, the inputs that are given, of which the shapes are read.
            options: As for `Client.solve`, but the relative tolerance is 1e-10 by default.
            hold_delassus: As for `Client.differentiate`.
            on_unsolved: What to do where an island is not solved or not differentiated.

        Raises:
            InvalidArgument: There is no derivative with respect to a path, an input has the wrong
                shape, or there is a mask.
        """
        check_on_unsolved(on_unsolved)
        options = options or Options()
        if options.response_mask:
            message = "options.response_mask is given; all outputs are needed"
            raise InvalidArgument(message, "options.response_mask")
        if options.relative_tolerance is None:
            options = replace(options, relative_tolerance=RELATIVE_TOLERANCE)
        self._client = client
        self._problem = problem
        self._inputs = [Input(problem, path) for path in inputs]
        for item in self._inputs:
            item.check(tuple(np.shape(inputs[item.path])))
        self._options = options
        self._hold_delassus = hold_delassus
        self._on_unsolved = on_unsolved
        contacts, rows = problem.num_contacts, problem.rows.count
        angular = _num_angular(problem.contacts) + _num_angular(problem.body_contacts)
        self.output_shapes: tuple[Index, ...] = (
            (problem.num_velocities,),
            (contacts, 3),
            (contacts, 3),
            (rows,),
            (rows,),
            (angular, 3),
            (),
        )

    def solve(self, inputs: Arrays, axes: int) -> list[FloatArray]:
        """The outputs in the order of `OUTPUTS`.

        Args:
            inputs: In the order of the paths.
            axes: Number of leading axes.

        Raises:
            SapError: The first error of the batch.
        """
        batch = _batch_shape(inputs, axes)
        outputs = self._allocate(batch)
        points = list(self._points(inputs, axes, batch))
        size = self._limit("max_batch_problems") if len(points) > 1 else 1
        for chunk in _chunks(points, size):
            outcomes = self._solve_chunk([point.problem for point in chunk])
            for point, outcome in zip(chunk, outcomes, strict=True):
                solution = value_of(outcome)
                report_unsolved(solution, self._on_unsolved)
                self._store(outputs, point.where, [solution])
        return outputs

    def pull_back(
        self,
        inputs: Arrays,
        velocity: NDArray[Any],
        cotangents: Arrays,
        wanted: Sequence[bool],
        axes: int,
    ) -> list[FloatArray]:
        """Gradients of the wanted inputs, along all leading axes of the batch.

        Args:
            inputs: As for `solve`.
            velocity: Of the solution.
            cotangents: In the order of `OUTPUTS`.
            wanted: For each input, whether its gradient is.
            axes: Number of leading axes.
        """
        used = [i for i, is_wanted in enumerate(wanted) if is_wanted]
        batch = _batch_shape([*inputs, velocity, *cotangents], axes)
        shapes = [inputs[i].shape[axes:] for i in used]
        gradients = [np.zeros(batch + shape) for shape in shapes]
        paths = [self._inputs[i].path for i in used]
        if APPLIED_IMPULSE in [item.path for item in self._inputs]:
            paths.append(APPLIED_IMPULSE)
        points = list(self._points([*inputs, velocity], axes, batch))
        requests = []
        for point in points:
            request = self._request(point, _at(velocity, point.where[0], axes))
            request.wanted = list(dict.fromkeys(paths))
            request.cotangents = [_cotangent(cotangents, index, axes) for index in point.where]
            requests.append(request)
        for point, results in zip(points, self._differentiate(requests), strict=True):
            of_point = [gradient for result in results for gradient in result.gradients]
            for index, gradient in zip(point.where, of_point, strict=True):
                for out, i, shape in zip(gradients, used, shapes, strict=True):
                    full = _gradient_of(gradient, self._inputs[i], point)
                    out[index] = self._inputs[i].reduce(full, shape)
        return gradients

    def push_forward(
        self, inputs: Arrays, velocity: NDArray[Any], tangents: Arrays, axes: int
    ) -> list[FloatArray]:
        """Tangents of the outputs.

        Args:
            inputs: As for `solve`.
            velocity: Of the solution.
            tangents: One per input, in the shape of the input.
            axes: Number of leading axes.
        """
        batch = _batch_shape([*inputs, velocity, *tangents], axes)
        outputs = self._allocate(batch)
        points = list(self._points([*inputs, velocity], axes, batch))
        requests = []
        for point in points:
            request = self._request(point, _at(velocity, point.where[0], axes))
            request.tangents = [
                self._direction(point, [_at(array, index, axes) for array in tangents])
                for index in point.where
            ]
            requests.append(request)
        for point, results in zip(points, self._differentiate(requests), strict=True):
            of_point = [tangent for result in results for tangent in result.tangents]
            self._store(outputs, point.where, of_point)
        return outputs

    @functools.cached_property
    def _limits(self) -> dict[str, float]:
        return self._client.info().limits

    def _limit(self, name: str) -> int:
        return int(self._limits[name])

    def _allocate(self, batch: Index) -> list[FloatArray]:
        return [np.zeros(batch + shape) for shape in self.output_shapes]

    def _points(self, arrays: Arrays, axes: int, batch: Index) -> Iterator[_Point]:
        """The different problems of a batch; `arrays` are the inputs and what else tells them."""
        own = _batch_shape(arrays, axes)
        for index in np.ndindex(own):
            ranges = (
                range(n) if m == 1 else [i] for i, m, n in zip(index, own, batch, strict=True)
            )
            values = {
                item.path: item.expand(_at(array, index, axes))
                for item, array in zip(self._inputs, arrays, strict=False)
            }
            impulse = values.pop(APPLIED_IMPULSE, None)
            problem = with_inputs(self._problem, values)
            change = None
            if impulse is not None:
                change = momentum.velocity_change(problem, impulse)
                v_star = {path: v for path in _V_STAR if (v := get(problem, path)).size}
                problem = with_inputs(problem, self._add_to_v_star(v_star, change))
            yield _Point(problem, change, list(itertools.product(*ranges)))

    def _add_to_v_star(
        self, v_star: dict[str, FloatArray], change: FloatArray
    ) -> dict[str, FloatArray]:
        """Adds [nv] to v* of trees and bodies, which is 0 where it is not given."""
        in_trees = int(self._problem.trees.dofs.sum())
        parts = (change[:in_trees], change[in_trees:].reshape(-1, 6))
        return {
            path: v_star.get(path, np.zeros(())) + part
            for path, part in zip(_V_STAR, parts, strict=True)
            if part.size
        }

    def _direction(self, point: _Point, tangents: Arrays) -> Problem:
        """The tangents of the inputs as a problem."""
        values = {
            item.path: item.expand(tangent)
            for item, tangent in zip(self._inputs, tangents, strict=True)
        }
        impulse = values.pop(APPLIED_IMPULSE, None)
        if point.velocity_change is not None and impulse is not None:
            dA = {path: values[path] for path in _DYNAMICS if path in values}
            follows = momentum.momentum_change(point.problem, dA, point.velocity_change)
            change = momentum.velocity_change(point.problem, impulse - follows)
            values.update(self._add_to_v_star(values, change))
        return with_inputs(Problem(0.0), values)

    def _request(self, point: _Point, velocity: FloatArray) -> DifferentiateRequest:
        return DifferentiateRequest(
            point.problem,
            velocity=velocity,
            hold_delassus=self._hold_delassus,
            # The outputs are known, and the time budget belongs to the batch.
            options=replace(self._options, response_mask=("islands",), time_budget=None),
        )

    def _differentiate(self, requests: list[DifferentiateRequest]) -> list[list[Derivatives]]:
        """Derivatives of each request, which is split where it asks for too many."""
        split = [
            (owner, piece)
            for owner, request in enumerate(requests)
            for piece in self._split(request)
        ]
        results: list[list[Derivatives]] = [[] for _ in requests]
        size = self._limit("max_batch_problems") if len(split) > 1 else 1
        for chunk in _chunks(split, size):
            outcomes = self._differentiate_chunk([request for _, request in chunk])
            for (owner, _), outcome in zip(chunk, outcomes, strict=True):
                derivatives = value_of(outcome)
                report_inaccurate(derivatives, self._on_unsolved)
                results[owner].append(derivatives)
        return results

    def _solve_chunk(self, problems: list[Problem]) -> Sequence[Solution | SapError]:
        # One problem by its own call, which costs the server no hand-over to another thread.
        if len(problems) == 1:
            return [self._client.solve(problems[0], self._options)]
        return self._client.solve_batch(problems, self._options)

    def _differentiate_chunk(
        self, requests: list[DifferentiateRequest]
    ) -> Sequence[Derivatives | SapError]:
        time_budget = self._options.time_budget
        if len(requests) > 1:
            return self._client.differentiate_batch(requests, time_budget=time_budget)
        (one,) = requests
        result = self._client.differentiate(
            one.problem,
            one.cotangents,
            tangents=one.tangents,
            velocity=one.velocity,
            wanted=one.wanted,
            hold_delassus=one.hold_delassus,
            options=replace(one.options or self._options, time_budget=time_budget),
        )
        return [result]

    def _split(self, request: DifferentiateRequest) -> Iterator[DifferentiateRequest]:
        count = len(request.cotangents) + len(request.tangents)
        size = max(1, self._limit("max_derivatives")) if count > 1 else 1
        for first in range(0, count, size):
            yield replace(
                request,
                cotangents=request.cotangents[first : first + size],
                tangents=request.tangents[first : first + size],
            )

    def _store(
        self,
        outputs: list[FloatArray],
        where: list[Index],
        sources: Sequence[Solution] | Sequence[Tangent],
    ) -> None:
        """Writes the outputs of each source to its index."""
        for name, shape, out in zip(OUTPUTS, self.output_shapes, outputs, strict=True):
            for index, source in zip(where, sources, strict=True):
                value = np.asarray(getattr(source, name))
                if value.shape != shape:
                    message = f"{name} has shape {value.shape}; {shape} follows from the problem"
                    raise InvalidArgument(message, name)
                out[index] = value


def _num_angular(contacts: Contacts | BodyContacts) -> int:
    """K: contacts with a torsional or rolling coefficient > 0."""
    count = contacts.count
    torsional, rolling = contacts.torsional_friction, contacts.rolling_friction
    has_axes = np.zeros(count, bool)
    if torsional.size:
        has_axes |= np.broadcast_to(torsional, count) > 0
    if rolling.size:
        has_axes |= np.any(np.broadcast_to(rolling.reshape(-1, 2), (count, 2)) > 0, axis=1)
    return int(has_axes.sum())


def _batch_shape(arrays: Arrays, axes: int) -> Index:
    return np.broadcast_shapes(*(array.shape[:axes] for array in arrays))


def _at(array: NDArray[Any], index: Index, axes: int) -> FloatArray:
    """The entry of an array for an evaluation, as doubles."""
    own = tuple(min(i, n - 1) for i, n in zip(index, array.shape[:axes], strict=True))
    return np.asarray(array[own], np.float64)


def _cotangent(arrays: Arrays, index: Index, axes: int) -> Cotangent:
    values = dict(zip(OUTPUTS, (_at(array, index, axes) for array in arrays), strict=True))
    cost = float(values.pop("cost"))
    return Cotangent(**values, cost=cost)


def _chunks(items: list[Any], size: int) -> Iterator[list[Any]]:
    for first in range(0, len(items), size):
        yield items[first : first + size]


def _gradient_of(gradient: Gradient, item: Input, point: _Point) -> FloatArray:
    """The gradient of an input with all entries."""
    path = item.path
    array = get(gradient, path)
    if not item.shape and not array.size:
        return np.zeros(())
    if array.size != math.prod(item.shape):
        needed = math.prod(item.shape)
        raise Internal(f"the gradient of {path} has {array.size} values; {needed} are needed")
    array = array.reshape(item.shape)
    if point.velocity_change is None or path not in _DYNAMICS:
        return array
    # The impulse adds A^-1 p to v*; the server gets only the sum.
    follows = momentum.gradient_of_momentum(
        point.problem, path, gradient.applied_impulse, point.velocity_change
    )
    return array - follows.reshape(item.shape)
