"""Deformable bodies as coupled trees: matrices of an implicit step, and contacts of their faces.

A body is nodes of three velocities and elements between them. With the elastic forces f and their
stiffness K at the current positions, stiffness-proportional damping D = d K, and all else implicit,

    A = M + δt D + δt² K,    v* = v + A^-1 δt (f + M g - D v - δt K v).

K is positive semidefinite: rotations of elements are followed, and geometric stiffness is left out
but that of tension. The free-motion velocity is found with a dense matrix, for up to a thousand
nodes or two; larger bodies want a sparse solver of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from sap_islands.arrays import FloatArray, IndexArray
from sap_islands.problem import Contacts, Trees


class ElementMatrices(NamedTuple):
    """Forces and stiffness of E elements with k nodes each.

    Attributes:
        nodes: [E, k] node of each corner.
        forces: [E, k, 3] on each corner [N].
        stiffness: [E, k, 3, k, 3] -∂force/∂position, symmetric positive semidefinite [N/m].
    """

    nodes: IndexArray
    forces: FloatArray
    stiffness: FloatArray


class Material(Protocol):
    """What makes a body of nodes."""

    @property
    def masses(self) -> FloatArray:
        """[N] lumped [kg]."""

    def evaluate(self, x: FloatArray) -> ElementMatrices:
        """Forces and stiffness at positions x in m, an array [N, 3]."""


@dataclass(frozen=True)
class Solid:
    """Corotated linear tetrahedra.

    Attributes:
        rest: [N, 3] positions without stress [m].
        tetrahedra: [E, 4] corners, of positive volume.
        density: [kg/m³].
        young: Young's modulus [Pa].
        poisson: Poisson's ratio, below 1/2.
    """

    rest: FloatArray
    tetrahedra: IndexArray
    density: float
    young: float
    poisson: float

    @property
    def masses(self) -> FloatArray:
        """[N] a quarter of each tetrahedron at its corners [kg]."""
        masses = np.zeros(len(self.rest))
        np.add.at(masses, self.tetrahedra, self.density * self._volumes()[:, None] / 4)
        return masses

    def evaluate(self, x: FloatArray) -> ElementMatrices:
        """Forces and stiffness at positions x: those of the rest turned by the polar rotation."""
        rest, now = _edges(self.rest, self.tetrahedra), _edges(x, self.tetrahedra)
        inverse = np.asarray(np.linalg.inv(rest), np.float64)
        left, _, right = np.linalg.svd(now @ inverse)
        # The last axis is turned where the element is inverted, so that R is a rotation.
        left[:, :, 2] *= np.linalg.det(left @ right)[:, None]
        R = left @ right
        K = self._linear_stiffness(inverse)
        offset = np.einsum("eji,ekj->eki", R, x[self.tetrahedra]) - self.rest[self.tetrahedra]
        turned = np.einsum("ekilj,elj->eki", K, offset)
        return ElementMatrices(
            self.tetrahedra,
            -np.einsum("eij,ekj->eki", R, turned),
            np.einsum("eai,ekilj,ebj->ekalb", R, K, R, optimize=True),
        )

    def _volumes(self) -> FloatArray:
        volumes: FloatArray = np.linalg.det(_edges(self.rest, self.tetrahedra)) / 6
        return volumes

    def _linear_stiffness(self, inverse: FloatArray) -> FloatArray:
        """[E, 4, 3, 4, 3] V (λ ∇_k ∇_l' + μ ∇_l ∇_k' + μ ∇_k·∇_l I)."""
        mu = self.young / (2 * (1 + self.poisson))
        lame = self.young * self.poisson / ((1 + self.poisson) * (1 - 2 * self.poisson))
        gradients = np.concatenate((-inverse.sum(axis=1, keepdims=True), inverse), axis=1)
        outer = np.einsum("eki,elj->ekilj", gradients, gradients)
        dots = np.einsum("eki,eli->ekl", gradients, gradients)
        K = lame * outer + mu * outer.transpose(0, 1, 4, 3, 2)
        K += mu * np.einsum("ekl,ij->ekilj", dots, np.eye(3))
        stiffness: FloatArray = self._volumes()[:, None, None, None, None] * K
        return stiffness


@dataclass(frozen=True)
class Cable:
    """A chain of segments that resist stretch, slack under compression.

    Attributes:
        rest_length: [N - 1] of each segment [m].
        linear_density: [kg/m].
        stretch_stiffness: Tension by relative stretch, EA [N].
    """

    rest_length: FloatArray
    linear_density: float
    stretch_stiffness: float

    @property
    def masses(self) -> FloatArray:
        """[N] half of each segment at its ends [kg]."""
        halves = np.append(self.rest_length, 0) + np.append(0, self.rest_length)
        masses: FloatArray = 0.5 * self.linear_density * halves
        return masses

    def evaluate(self, x: FloatArray) -> ElementMatrices:
        """Forces and stiffness at positions x, that of tension across the segments included."""
        count = len(self.rest_length)
        nodes = np.arange(count)[:, None] + np.arange(2)
        along = np.diff(x, axis=0)
        length = np.linalg.norm(along, axis=1)
        direction = along / length[:, None]
        tension = np.maximum(self.stretch_stiffness * (length / self.rest_length - 1), 0.0)
        axial = np.where(length > self.rest_length, self.stretch_stiffness / self.rest_length, 0.0)
        outer = np.einsum("ei,ej->eij", direction, direction)
        across = (tension / length)[:, None, None] * (np.eye(3) - outer)
        block = axial[:, None, None] * outer + across
        signs = np.array([[1.0, -1.0], [-1.0, 1.0]])
        pull = tension[:, None] * direction
        return ElementMatrices(
            nodes, np.stack((pull, -pull), axis=1), np.einsum("kl,eij->ekilj", signs, block)
        )


def grid(cells: Sequence[int], size: Sequence[float]) -> tuple[FloatArray, IndexArray]:
    """Nodes and tetrahedra of a box of cells with one corner at the origin, six in each cell."""
    shape = [n + 1 for n in cells]
    index = np.arange(np.prod(shape)).reshape(shape)
    axes = [np.linspace(0, length, n) for length, n in zip(size, shape, strict=True)]
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    tetrahedra = []
    for order in ((0, 1, 2), (1, 2, 0), (2, 0, 1), (0, 2, 1), (2, 1, 0), (1, 0, 2)):
        corner = [0, 0, 0]
        path = [tuple(corner)]
        for axis in order:
            corner[axis] = 1
            path.append(tuple(corner))
        if order in ((0, 2, 1), (2, 1, 0), (1, 0, 2)):
            path[2], path[3] = path[3], path[2]
        parts = [index[tuple(slice(o, o + n) for o, n in zip(p, cells, strict=True))] for p in path]
        tetrahedra.append(np.stack([part.ravel() for part in parts], axis=1))
    return nodes, np.concatenate(tetrahedra)


def step(
    material: Material,
    x: FloatArray,
    v: FloatArray,
    time_step: float,
    gravity: ArrayLike = (0.0, 0.0, -9.81),
    damping: float = 0.0,
    fixed: ArrayLike = (),
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
    """
    nodes, forces, stiffness = material.evaluate(x)
    masses = material.masses.copy()
    masses[np.asarray(fixed, int)] *= 1e9
    count = len(masses)
    scaled = (time_step**2 + time_step * damping) * stiffness
    keys, blocks = _sum_blocks(nodes, scaled, count)
    diagonal = keys // count == keys % count
    A_nn = masses[:, None, None] * np.eye(3)
    A_nn[keys[diagonal] // count] += blocks[diagonal]
    below = keys // count > keys % count
    a, b = keys[below] // count, keys[below] % count
    # M g - D v - δt K v + f, by elements.
    rate = np.einsum("ekilj,elj->eki", (damping + time_step) * stiffness, v[nodes])
    force = masses[:, None] * np.asarray(gravity, float)
    np.add.at(force, nodes, forces - rate)
    force[np.asarray(fixed, int)] = 0
    A = np.zeros((count, 3, count, 3))
    A[np.arange(count), :, np.arange(count)] = A_nn
    A[a, :, b] = blocks[below]
    A[b, :, a] = blocks[below].transpose(0, 2, 1)
    change = np.linalg.solve(A.reshape(3 * count, -1), time_step * force.ravel())
    return Trees(
        dofs=np.full(count, 3, np.uint32),
        dynamics_matrix=A_nn.ravel(),
        free_motion_velocity=v.ravel() + change,
        guess_velocity=v.ravel(),
        coupled_a=a.astype(np.int32),
        coupled_b=b.astype(np.int32),
        coupling_block=blocks[below].ravel(),
    )


def contacts(
    nodes: ArrayLike,
    weights: ArrayLike,
    normal: ArrayLike,
    signed_distance: ArrayLike,
    stiffness: float = 1e7,
    relaxation_time: float = 0.0,
    friction: float = 0.5,
) -> Contacts:
    """Contacts of points of a body with something that stands still.

    Args:
        nodes: [C, k] nodes that each point moves with: one, or those of a face or an element.
        weights: [C, k] of each of them; nodes of weight 0 are left out.
        normal: [C, 3] or [3] unit vectors towards the body.
        signed_distance: [C] or a number [m].
        stiffness: [N/m].
        relaxation_time: [s].
        friction: Coefficient [-].
    """
    nodes, weights = np.asarray(nodes, np.int32), np.asarray(weights, float)
    count = len(nodes)
    frames = _frames(np.broadcast_to(np.asarray(normal, float), (count, 3)))
    used = weights != 0
    blocks = np.einsum("ck,cij->ckij", weights, frames)[used]
    return Contacts(
        parts=used.sum(axis=1).astype(np.uint32),
        part_tree=nodes[used],
        jacobian=blocks.ravel(),
        signed_distance=np.broadcast_to(np.asarray(signed_distance, float), count),
        stiffness=np.full(count, stiffness),
        relaxation_time=np.full(count, relaxation_time),
        friction=np.full(count, friction),
    )


def _edges(x: FloatArray, tetrahedra: IndexArray) -> FloatArray:
    """[E, 3, 3] the edges from the first corner, as columns."""
    corners = x[tetrahedra]
    edges: FloatArray = (corners[:, 1:] - corners[:, :1]).transpose(0, 2, 1)
    return edges


def _sum_blocks(
    nodes: IndexArray, stiffness: FloatArray, count: int
) -> tuple[IndexArray, FloatArray]:
    """Sums of the blocks of each pair of nodes, by first times count plus second, ascending."""
    first = np.broadcast_to(nodes[:, :, None], (*nodes.shape, nodes.shape[1]))
    pairs = first.astype(np.int64) * count + nodes[:, None, :]
    keys, place = np.unique(pairs.ravel(), return_inverse=True)
    blocks = np.zeros((len(keys), 3, 3))
    np.add.at(blocks, place, stiffness.transpose(0, 1, 3, 2, 4).reshape(-1, 3, 3))
    return keys, blocks


def _frames(normal: FloatArray) -> FloatArray:
    """[C, 3, 3] rows t1, t2, n."""
    axis = np.eye(3)[np.argmin(abs(normal), axis=1)]
    t1 = np.cross(axis, normal)
    t1 /= np.linalg.norm(t1, axis=1, keepdims=True)
    return np.stack((t1, np.cross(normal, t1), normal), axis=1)
