"""The project's solver in this process, by the C interface of solver_library.cc."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from ctypes import POINTER, c_char_p, c_double, c_int, c_int32, c_int64, c_void_p
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from contact_arrays import ContactArrays

if TYPE_CHECKING:
    from sap_islands.problem import Problem

UNSIGNED = {"trees.dofs", "rows.entries", "rows.velocity_index"}
SIGNED = {"contacts.tree_a", "contacts.tree_b"}


class _Array(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("data", c_void_p), ("size", c_int64)]


class _Problem(ctypes.Structure):
    _fields_ = [
        ("time_step", c_double),
        ("beta", c_double),
        ("sigma", c_double),
        ("stiction_speed", c_double),
        ("diagonal_rule", c_int32),
        ("num_arrays", c_int32),
        ("arrays", POINTER(_Array)),
    ]


class _Result(ctypes.Structure):
    _fields_ = [
        ("check_s", c_double),
        ("first_s", c_double),
        ("least_s", c_double),
        ("momentum_residual", c_double),
        ("iterations", c_int32),
        ("factorizations", c_int32),
        ("islands", c_int32),
        ("largest_island_dofs", c_int32),
        ("failed_islands", c_int32),
    ]


@dataclass
class WireArrays:
    """A problem of trees, contacts with Jacobians and rows, as proto/sap/v1/problem.proto has it.

    Attributes:
        time_step: dt [s].
        arrays: By name, such as "contacts.jacobian"; what is absent or empty has its default.
        beta, sigma, stiction_speed, diagonal_rule: Regularization.
    """

    time_step: float
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    beta: float = 1.0
    sigma: float = 1e-3
    stiction_speed: float = 1e-4
    diagonal_rule: bool = False

    def count(self, name: str) -> int:
        return len(self.arrays.get(name, ()))


def wire_arrays(problem: ContactArrays) -> WireArrays:
    sides = [side for pair in zip(problem.J_a, problem.J_b) for side in pair if side is not None]
    arrays = {
        "trees.dofs": problem.dofs,
        "trees.dynamics_matrix": np.concatenate([block.ravel() for block in problem.A]),
        "trees.free_motion_velocity": problem.v_star,
        "trees.guess_velocity": problem.guess,
        "contacts.tree_a": problem.tree_a,
        "contacts.tree_b": problem.tree_b,
        "contacts.jacobian": np.concatenate([side.ravel() for side in sides] or [np.zeros(0)]),
        "contacts.signed_distance": problem.phi0,
        "contacts.stiffness": problem.stiffness,
        "contacts.relaxation_time": problem.tau_d,
        "contacts.friction": problem.mu,
        "contacts.regularization_t": problem.R_t,
        "contacts.regularization_n": problem.R_n,
        "contacts.surface_velocity": problem.surface_velocity,
    }
    given = {name: array for name, array in arrays.items() if array is not None}
    return WireArrays(
        problem.time_step,
        given,
        beta=problem.beta,
        sigma=problem.sigma,
        diagonal_rule=problem.diagonal_rule,
    )


def wire_arrays_of_client(problem: Problem) -> WireArrays:
    """A problem of trees, contacts with Jacobians and rows."""
    arrays = {
        f"{group}.{name}": np.asarray(values)
        for group in ("trees", "contacts", "rows")
        for name, values in vars(getattr(problem, group)).items()
        if isinstance(values, np.ndarray) and values.size and not name.endswith("_id")
    }
    given = problem.regularization
    law = {"beta": given.beta, "sigma": given.sigma, "stiction_speed": given.stiction_speed}
    chosen = {name: value for name, value in law.items() if value is not None}
    return WireArrays(problem.time_step, arrays, **chosen)


@dataclass
class Solved:
    """What one solve took. `first_s` counts everything that a step of a session would, except
    `check_s`, the check of the problem."""

    check_s: float
    first_s: float
    least_s: float
    momentum_residual: float
    iterations: int
    factorizations: int
    islands: int
    largest_island_dofs: int
    failed_islands: int
    velocity: np.ndarray
    impulse: np.ndarray


def _type_of(name: str) -> type:
    return np.uint32 if name in UNSIGNED else np.int32 if name in SIGNED else np.float64


def _pass(problem: WireArrays) -> tuple[_Problem, dict[str, np.ndarray]]:
    """The problem as the library takes it, and the arrays, which must outlive it."""
    flat = {
        name: np.ascontiguousarray(array, _type_of(name)).ravel()
        for name, array in problem.arrays.items()
    }
    arrays = (_Array * len(flat))(
        *(_Array(name.encode(), array.ctypes.data, len(array)) for name, array in flat.items())
    )
    given = _Problem(
        problem.time_step,
        problem.beta,
        problem.sigma,
        problem.stiction_speed,
        problem.diagonal_rule,
        len(flat),
        arrays,
    )
    return given, flat


class Solver:
    """One stream of problems: workspaces and elimination plans are kept between calls."""

    def __init__(
        self, library: Path, threads: int = 1, accelerated: bool = True, tolerance: float = 1e-6
    ):
        self._library = ctypes.CDLL(str(library))
        self._library.BenchMake.restype = c_void_p
        self._library.BenchMake.argtypes = [c_int, c_int, c_double]
        self._library.BenchFree.argtypes = [c_void_p]
        self._library.BenchSolve.argtypes = [
            c_void_p,
            POINTER(_Problem),
            c_int,
            POINTER(_Result),
            c_void_p,
            c_void_p,
        ]
        self._library.BenchTangents.restype = c_double
        self._library.BenchTangents.argtypes = [
            c_void_p,
            POINTER(_Problem),
            c_int,
            c_void_p,
            c_void_p,
        ]
        self._bench = self._library.BenchMake(threads, accelerated, tolerance)

    def __del__(self):
        self._library.BenchFree(self._bench)

    def solve(self, problem: ContactArrays | WireArrays, repeats: int = 1) -> Solved:
        """Raises ValueError where the problem is refused; the reason is on standard error."""
        if isinstance(problem, ContactArrays):
            problem = wire_arrays(problem)
        given, flat = _pass(problem)
        result = _Result()
        velocity = np.empty(len(flat["trees.free_motion_velocity"]))
        impulse = np.empty(3 * problem.count("contacts.tree_a"))
        if self._library.BenchSolve(
            self._bench,
            ctypes.byref(given),
            repeats,
            ctypes.byref(result),
            velocity.ctypes.data,
            impulse.ctypes.data,
        ):
            raise ValueError("the solver refused the problem")
        figures = {name: getattr(result, name) for name, _ in _Result._fields_}
        return Solved(**figures, velocity=velocity, impulse=impulse)

    def tangents(self, problem: ContactArrays, directions: np.ndarray) -> tuple[float, np.ndarray]:
        """Solves, and differentiates the velocity along the rows of `directions` of v*.

        Returns the seconds of both together, and the derivatives as rows.
        """
        given, flat = _pass(wire_arrays(problem))
        directions = np.ascontiguousarray(directions, float)
        tangents = np.empty_like(directions)
        seconds = self._library.BenchTangents(
            self._bench,
            ctypes.byref(given),
            len(directions),
            directions.ctypes.data,
            tangents.ctypes.data,
        )
        del flat
        if seconds < 0:
            raise ValueError("the solver refused the problem")
        return seconds, tangents
