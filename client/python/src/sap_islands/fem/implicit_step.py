"""The trees of a body over one implicit step: A, its blocks between nodes, and v*."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from sap_islands.arrays import FloatArray, IndexArray
from sap_islands.errors import InvalidArgument
from sap_islands.fem.block_tridiagonal import solve
from sap_islands.fem.elements import ElementMatrices, Material
from sap_islands.problem import Trees


def step(
    material: Material,
    x: FloatArray,
    v: FloatArray,
    time_step: float,
    gravity: ArrayLike = (0.0, 0.0, -9.81),
    damping: float = 0.0,
    fixed: ArrayLike = (),
    forces: ArrayLike = 0.0,
    extra: Sequence[ElementMatrices] = (),
) -> Trees:
    """The trees of a body: one per node, coupled by its elements.

    Args:
        material: Of N nodes.
        x: [N, 3] positions [m].
        v: [N, 3] velocities [m/s], also the guess.
        time_step: δt [s].
        gravity: [m/s²].
        damping: Stiffness-proportional, the time d in D = d K [s].
        fixed: Nodes that hardly move: their masses count a billion times.
        forces: [N, 3] or [3], on each node [N].
        extra: Other elements on these nodes, such as `anchors`.

    Raises:
        InvalidArgument: A node has no mass, as one that no element uses.
    """
    held = np.asarray(fixed, int)
    masses = material.masses.copy()
    massless = np.flatnonzero(~(masses > 0))
    if massless.size:
        raise InvalidArgument(
            f"masses[{massless[0]}] is {masses[massless[0]]}; > 0 is needed", "masses"
        )
    masses[held] *= 1e9
    count = len(masses)
    force = masses[:, None] * np.asarray(gravity, float) + np.asarray(forces, float)
    keys, blocks = [], []
    for elements in (*material.evaluate(x), *extra):
        keys.append(_pairs(elements.nodes, count))
        blocks.append(elements.stiffness.transpose(0, 1, 3, 2, 4).reshape(-1, 3, 3))
        # f - D v - δt K v of these elements.
        rate = np.einsum("ekilj,elj->eki", elements.stiffness, v[elements.nodes])
        np.add.at(force, elements.nodes, elements.forces - (damping + time_step) * rate)
    force[held] = 0
    pair, place = np.unique(np.concatenate(keys), return_inverse=True)
    A = np.zeros((len(pair), 3, 3))
    np.add.at(A, place, (time_step**2 + time_step * damping) * np.concatenate(blocks))
    row, column = np.divmod(pair, count)
    A_nn = masses[:, None, None] * np.eye(3)
    A_nn[row[row == column]] += A[row == column]
    below = row > column
    a, b, A_ab = row[below], column[below], A[below]
    change = solve(A_nn, a, b, A_ab, time_step * force)
    return Trees(
        dofs=np.full(count, 3, np.uint32),
        dynamics_matrix=A_nn.ravel(),
        free_motion_velocity=(v + change).ravel(),
        guess_velocity=v.ravel(),
        coupled_a=a.astype(np.int32),
        coupled_b=b.astype(np.int32),
        coupling_block=A_ab.ravel(),
    )


def _pairs(nodes: IndexArray, count: int) -> IndexArray:
    """First times count plus second of each pair of corners, as the blocks of the stiffness."""
    pairs: IndexArray = nodes[:, :, None].astype(np.int64) * count + nodes[:, None, :]
    return pairs.ravel()
