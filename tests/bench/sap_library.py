"""The project's solver in this process, by the C interface of solver_library.cc."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_double, c_int, c_int32, c_int64, c_uint32, c_void_p
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from contact_arrays import ContactArrays


class _Problem(ctypes.Structure):
    _fields_ = [
        ("time_step", c_double),
        ("num_trees", c_int64),
        ("num_contacts", c_int64),
        ("dofs", POINTER(c_uint32)),
        ("dynamics_matrix", POINTER(c_double)),
        ("free_motion_velocity", POINTER(c_double)),
        ("guess_velocity", POINTER(c_double)),
        ("tree_a", POINTER(c_int32)),
        ("tree_b", POINTER(c_int32)),
        ("jacobian", POINTER(c_double)),
        ("signed_distance", POINTER(c_double)),
        ("stiffness", POINTER(c_double)),
        ("relaxation_time", POINTER(c_double)),
        ("friction", POINTER(c_double)),
        ("regularization_t", POINTER(c_double)),
        ("regularization_n", POINTER(c_double)),
        ("surface_velocity", POINTER(c_double)),
        ("beta", c_double),
        ("sigma", c_double),
        ("diagonal_rule", c_int32),
        ("num_velocities", c_int64),
        ("matrix_entries", c_int64),
        ("jacobian_entries", c_int64),
    ]


class _Result(ctypes.Structure):
    _fields_ = [
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
class Solved:
    """What one solve took. `first_s` counts everything that a step of a session would."""

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


def _pointer(array: np.ndarray | None, type_):
    return None if array is None else array.ctypes.data_as(POINTER(type_))


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
            POINTER(c_double),
            POINTER(c_double),
        ]
        self._bench = self._library.BenchMake(threads, accelerated, tolerance)

    def __del__(self):
        self._library.BenchFree(self._bench)

    def solve(self, problem: ContactArrays, repeats: int = 1) -> Solved:
        """Raises ValueError where the problem is refused; the reason is on standard error."""
        A = np.concatenate([block.ravel() for block in problem.A])
        blocks = []
        for J_a, J_b in zip(problem.J_a, problem.J_b):
            blocks += [J_a.ravel()] if J_b is None else [J_a.ravel(), J_b.ravel()]
        J = np.concatenate(blocks) if blocks else np.zeros(0)
        kept = {
            "v_star": np.ascontiguousarray(problem.v_star, float),
            "guess": np.ascontiguousarray(problem.guess, float),
        }
        arrays = _Problem(
            problem.time_step,
            len(problem.dofs),
            problem.num_contacts,
            _pointer(problem.dofs, c_uint32),
            _pointer(A, c_double),
            _pointer(kept["v_star"], c_double),
            _pointer(kept["guess"], c_double),
            _pointer(problem.tree_a, c_int32),
            _pointer(problem.tree_b, c_int32),
            _pointer(J, c_double),
            _pointer(problem.phi0, c_double),
            _pointer(problem.stiffness, c_double),
            _pointer(problem.tau_d, c_double),
            _pointer(problem.mu, c_double),
            _pointer(problem.R_t, c_double),
            _pointer(problem.R_n, c_double),
            _pointer(problem.surface_velocity, c_double),
            problem.beta,
            problem.sigma,
            problem.diagonal_rule,
            problem.num_velocities,
            len(A),
            len(J),
        )
        result = _Result()
        velocity = np.empty(problem.num_velocities)
        impulse = np.empty(3 * problem.num_contacts)
        if self._library.BenchSolve(
            self._bench,
            ctypes.byref(arrays),
            repeats,
            ctypes.byref(result),
            _pointer(velocity, c_double),
            _pointer(impulse, c_double),
        ):
            raise ValueError("the solver refused the problem")
        figures = {name: getattr(result, name) for name, _ in _Result._fields_}
        return Solved(**figures, velocity=velocity, impulse=impulse)
