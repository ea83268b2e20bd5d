"""Kinematic trees with dense dynamics matrices, and free rigid bodies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sap_islands._arrays.array_field import ArrayField, Float64, concatenate
from sap_islands._arrays.array_group import ArrayGroup
from sap_islands.arrays import FloatArray


@dataclass(eq=False, repr=False)
class Trees(ArrayGroup):
    """Articulated bodies: T kinematic trees, tree t with n_t degrees of freedom.

    Attributes:
        dofs: [T] n_t, each at least 1.
        dynamics_matrix: [sum n_t²] A_t of each tree, row-major, concatenated [kg, kg m, kg m²].
            Symmetric and positive definite.
        free_motion_velocity: [sum n_t] v*, the velocity at the end of the step without contact
            [m/s, rad/s].
        guess_velocity: [sum n_t] initial guess, or empty: v* [m/s, rad/s].
        tree_id: [T] identifiers that a session matches from step to step, or empty.
        initial_velocity: [sum n_t] velocity at the beginning of the step, which
            `RegularizationRule.LOAD_PATH` and `Options.rest` need; or empty [m/s, rad/s].
        coupled_a: [K] first tree of each pair of trees with a block of the dynamics matrix between
            them, as two nodes of a mesh; greater than the second, pairs ascending. Or empty.
        coupled_b: [K] second tree of each pair.
        coupling_block: [sum n_a n_b] A_ab of each pair, row-major, concatenated.
    """

    FIELD = "trees"

    dofs: ArrayField[np.uint32] = ArrayField(np.uint32)
    dynamics_matrix: ArrayField[Float64] = ArrayField(Float64)
    free_motion_velocity: ArrayField[Float64] = ArrayField(Float64)
    guess_velocity: ArrayField[Float64] = ArrayField(Float64)
    tree_id: ArrayField[np.uint32] = ArrayField(np.uint32)
    initial_velocity: ArrayField[Float64] = ArrayField(Float64)
    coupled_a: ArrayField[np.int32] = ArrayField(np.int32, repeats=False)
    coupled_b: ArrayField[np.int32] = ArrayField(np.int32, repeats=False)
    coupling_block: ArrayField[Float64] = ArrayField(Float64, repeats=False)

    @property
    def count(self) -> int:
        """T."""
        return self.dofs.size

    @classmethod
    def from_blocks(
        cls,
        matrices: Sequence[FloatArray],
        free_motion_velocity: ArrayLike,
        guess_velocity: ArrayLike = (),
        tree_id: ArrayLike = (),
        initial_velocity: ArrayLike = (),
    ) -> Trees:
        """Makes trees from their dynamics matrices A_t, [n_t, n_t] each."""
        return cls(
            dofs=np.array([len(matrix) for matrix in matrices], np.uint32),
            dynamics_matrix=concatenate(matrices),
            free_motion_velocity=free_motion_velocity,
            guess_velocity=guess_velocity,
            tree_id=tree_id,
            initial_velocity=initial_velocity,
        )

    def blocks(self) -> list[FloatArray]:
        """A_t of each tree as views, [n_t, n_t] each."""
        ends = np.cumsum(self.dofs.astype(np.int64) ** 2)
        pieces = np.split(self.dynamics_matrix.ravel(), ends[:-1]) if len(ends) else []
        return [piece.reshape(n, n) for piece, n in zip(pieces, self.dofs, strict=True)]


@dataclass(eq=False, repr=False)
class RigidBodies(ArrayGroup):
    """B free rigid bodies with six velocities each: that of the center of mass, then angular.

    All quantities are in world axes. Body i counts as tree T + i.

    Attributes:
        mass: [B] > 0 [kg].
        inertia: [B, 6] about the center of mass as xx, yy, zz, xy, xz, yz [kg m²].
        center_of_mass: [B, 3] position [m].
        free_motion_velocity: [B, 6] v*, the velocity at the end of the step without contact [m/s,
            rad/s].
        guess_velocity: [B, 6] initial guess, or empty: v* [m/s, rad/s].
        body_id: [B] identifiers that a session matches from step to step, or empty.
        initial_velocity: [B, 6] as for `Trees`, or empty [m/s, rad/s].
    """

    FIELD = "bodies"

    mass: ArrayField[Float64] = ArrayField(Float64)
    inertia: ArrayField[Float64] = ArrayField(Float64, 6)
    center_of_mass: ArrayField[Float64] = ArrayField(Float64, 3)
    free_motion_velocity: ArrayField[Float64] = ArrayField(Float64, 6)
    guess_velocity: ArrayField[Float64] = ArrayField(Float64, 6)
    body_id: ArrayField[np.uint32] = ArrayField(np.uint32)
    initial_velocity: ArrayField[Float64] = ArrayField(Float64, 6)

    @property
    def count(self) -> int:
        """B."""
        return self.mass.size if self.mass.ndim else self.center_of_mass.size // 3
