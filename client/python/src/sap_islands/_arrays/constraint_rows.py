"""Constraints on single linear combinations of velocities, as joint limits and motors.

v_c = J v + b,   y = (v̂ - v_c) / R + δt u,   γ = min(max(y, δt lower), δt upper)
v̂ = -g0 / (δt + τ),   R = max(β² w / 4π², 1 / (δt k (δt + τ))),   w = J A^-1 J'
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sap_islands._arrays.array_field import ArrayField, Float64
from sap_islands._arrays.array_group import ArrayGroup
from sap_islands.errors import InvalidArgument


@dataclass(eq=False, repr=False)
class ConstraintRows(ArrayGroup):
    """R rows with E non-zeros; a row may touch any number of trees and bodies.

    Attributes:
        entries: [R] non-zeros of each row, at least 1.
        velocity_index: [E] generalized velocity of each non-zero, ascending within a row:
            velocities of the trees in order, then six per body.
        coefficient: [E] J of each non-zero [-, m].
        position_error: [R] g0, as the distance to a limit, or empty: 0 [m, rad].
        velocity_offset: [R] b, or empty: 0 [m/s, rad/s].
        stiffness: [R] k > 0, infinite for a rigid row, or empty: infinite [N/m, N m/rad].
        relaxation_time: [R] τ >= 0, or empty: 0 [s].
        force_lower: [R] least force, or empty: -infinity [N, N m].
        force_upper: [R] largest force, or empty: infinity [N, N m].
        regularization: [R] R, or empty or 0: by rule [1/kg, 1/(kg m²)].
        target_velocity: [R] v̂, or empty: from g0, which is not read otherwise [m/s, rad/s].
        delassus_estimate: [R] w, or empty or 0: J A^-1 J' [1/kg, 1/(kg m²)].
        slip_parameter: [R] where > 0, R is this times w, as for dry friction; or empty: 0 [-].
        force_offset: [R] u, as the feed-forward of a motor, or empty: 0 [N, N m].
        guess_impulse: [R] impulses that the interior-point method starts from, as those of a
            solution, or empty: no guess [N s, N m s].
    """

    FIELD = "rows"

    entries: ArrayField[np.uint32] = ArrayField(np.uint32, repeats=False)
    velocity_index: ArrayField[np.uint32] = ArrayField(np.uint32, repeats=False)
    coefficient: ArrayField[Float64] = ArrayField(Float64, repeats=False)
    position_error: ArrayField[Float64] = ArrayField(Float64)
    velocity_offset: ArrayField[Float64] = ArrayField(Float64)
    stiffness: ArrayField[Float64] = ArrayField(Float64)
    relaxation_time: ArrayField[Float64] = ArrayField(Float64)
    force_lower: ArrayField[Float64] = ArrayField(Float64)
    force_upper: ArrayField[Float64] = ArrayField(Float64)
    regularization: ArrayField[Float64] = ArrayField(Float64)
    target_velocity: ArrayField[Float64] = ArrayField(Float64)
    delassus_estimate: ArrayField[Float64] = ArrayField(Float64)
    slip_parameter: ArrayField[Float64] = ArrayField(Float64)
    force_offset: ArrayField[Float64] = ArrayField(Float64)
    guess_impulse: ArrayField[Float64] = ArrayField(Float64)

    @property
    def count(self) -> int:
        """R."""
        return self.entries.size

    @classmethod
    def from_dense(cls, J: ArrayLike, **laws: ArrayLike) -> ConstraintRows:
        """Makes rows from the matrix J, [R, nv], without its zeros.

        Args:
            J: Coefficients of all velocities [-, m].
            **laws: The other attributes of the class.

        Raises:
            InvalidArgument: J is not a matrix.
        """
        matrix = np.asarray(J)
        if matrix.ndim != 2:
            raise InvalidArgument(f"J has shape {matrix.shape}; a matrix is needed", "J")
        row, column = np.nonzero(matrix)
        entries = np.bincount(row, minlength=len(matrix))
        return cls(entries, column, matrix[row, column], **laws)

    @classmethod
    def from_csr(
        cls, indptr: ArrayLike, indices: ArrayLike, data: ArrayLike, **laws: ArrayLike
    ) -> ConstraintRows:
        """Makes rows from the arrays of a compressed sparse matrix, as `scipy.sparse.csr_array`.

        Args:
            indptr: [R + 1] where each row begins in `indices` and `data`.
            indices: [E] velocities, ascending within each row, as `sort_indices` of SciPy makes
                them.
            data: [E] coefficients [-, m].
            **laws: The other attributes of the class.
        """
        return cls(np.diff(np.asarray(indptr)), indices, data, **laws)
