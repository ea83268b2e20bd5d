"""Contributions of elements to a body: energy, forces and stiffness at given positions.

An element with k nodes x_k and shape gradients G_k in its rest has the deformation gradient
F = sum x_k G_k'. With the energy ψ(F) per volume, P = ∂ψ/∂F and C ≈ ∂P/∂F,

    f_k = -V P G_k,    K_kl = V G_k' C G_l
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from sap_islands.arrays import FloatArray, IndexArray


class ElementMatrices(NamedTuple):
    """Energy, forces and stiffness of E elements with k nodes each.

    Attributes:
        nodes: [E, k] node of each corner.
        energy: [E] of each [J].
        forces: [E, k, 3] on each corner, minus the gradient of the energy [N].
        stiffness: [E, k, 3, k, 3] -∂force/∂position without what could make it indefinite:
            symmetric positive semidefinite [N/m].
    """

    nodes: IndexArray
    energy: FloatArray
    forces: FloatArray
    stiffness: FloatArray


class Material(Protocol):
    """Material of a body of N nodes."""

    @property
    def masses(self) -> FloatArray:
        """[N] lumped [kg]."""

    def evaluate(self, x: FloatArray) -> tuple[ElementMatrices, ...]:
        """Its kinds of elements at positions x in m, an array [N, 3]."""


class Density(NamedTuple):
    """Energy per volume and its derivatives by F, an array [E, 3, d].

    Attributes:
        energy: [E] ψ [J/m³].
        stress: [E, 3, d] P, the first Piola-Kirchhoff stress [Pa].
        stiffness: [E, 3, d, 3, d] C, symmetric positive semidefinite [Pa].
    """

    energy: FloatArray
    stress: FloatArray
    stiffness: FloatArray


@dataclass(frozen=True)
class Simplices:
    """Elements with constant F: tetrahedra (d = 3) or triangles (d = 2).

    Attributes:
        nodes: [E, d + 1] corners.
        gradients: [E, d + 1, d] G_k in the rest [1/m].
        volumes: [E] in the rest; of triangles area times thickness [m³].
    """

    nodes: IndexArray
    gradients: FloatArray
    volumes: FloatArray

    @classmethod
    def of_edges(cls, nodes: IndexArray, edges: FloatArray, thickness: float = 1.0) -> Simplices:
        """Makes them from the edges [E, d, d] at rest from the first corner, as columns."""
        d = edges.shape[1]
        inverse = np.asarray(np.linalg.inv(edges), np.float64)
        gradients = np.concatenate((-inverse.sum(axis=1, keepdims=True), inverse), axis=1)
        volumes = thickness * np.linalg.det(edges) / (6 if d == 3 else 2)
        return cls(nodes, gradients, volumes)

    def deformation(self, x: FloatArray) -> FloatArray:
        """[E, 3, d] F at positions x."""
        F: FloatArray = np.einsum("eki,eka->eia", x[self.nodes], self.gradients)
        return F

    def matrices(self, density: Density) -> ElementMatrices:
        """Energy, forces and stiffness with a density at the current F."""
        V, G = self.volumes, self.gradients
        return ElementMatrices(
            self.nodes,
            V * density.energy,
            -np.einsum("e,eia,eka->eki", V, density.stress, G),
            np.einsum("e,eka,eiajb,elb->ekilj", V, G, density.stiffness, G, optimize=True),
        )


def lumped_masses(nodes: IndexArray, masses: FloatArray, count: int) -> FloatArray:
    """[count] the mass of each element in equal parts at its nodes."""
    corners = nodes.shape[1]
    lumped = np.bincount(nodes.ravel(), np.repeat(masses / corners, corners), count)
    return np.asarray(lumped, np.float64)


def anchors(
    x: FloatArray, nodes: ArrayLike, targets: ArrayLike, stiffness: float
) -> ElementMatrices:
    """Springs that pull nodes to places, which may move from step to step.

    Args:
        x: [N, 3] positions [m].
        nodes: [P] what is pulled.
        targets: [P, 3] where to [m].
        stiffness: [N/m].
    """
    pulled = np.atleast_1d(np.asarray(nodes, np.int64))
    stretch = x[pulled] - np.asarray(targets, np.float64).reshape(-1, 3)
    K = np.broadcast_to(stiffness * np.eye(3)[:, None, :], (len(pulled), 1, 3, 1, 3))
    return ElementMatrices(
        pulled[:, None],
        0.5 * stiffness * (stretch**2).sum(axis=1),
        -stiffness * stretch[:, None],
        K,
    )
