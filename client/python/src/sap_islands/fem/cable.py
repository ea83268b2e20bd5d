"""Cables: segments that resist stretch, and bending between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sap_islands.arrays import FloatArray, IndexArray
from sap_islands.fem.elements import ElementMatrices, lumped_masses


@dataclass(frozen=True)
class Cable:
    """A chain of N nodes, slack under compression, straight at rest.

    Attributes:
        rest_length: [N - 1] of each segment [m].
        linear_density: [kg/m].
        stretch_stiffness: Tension by relative stretch, EA [N].
        bending_stiffness: Moment by curvature, EI [N m²].
    """

    rest_length: FloatArray
    linear_density: float
    stretch_stiffness: float
    bending_stiffness: float = 0.0

    @property
    def masses(self) -> FloatArray:
        """[N] half of each segment at its ends [kg]."""
        segments = self._nodes(2)
        return lumped_masses(segments, self.linear_density * self.rest_length, len(segments) + 1)

    def evaluate(self, x: FloatArray) -> tuple[ElementMatrices, ...]:
        """Its segments, and its bends if it resists bending, at positions x."""
        along = np.diff(x, axis=0)
        length = np.linalg.norm(along, axis=1)
        t = along / length[:, None]
        across = np.eye(3) - np.einsum("ei,ej->eij", t, t)
        stretched = self._stretch(length, t, across)
        if self.bending_stiffness == 0 or len(length) < 2:
            return (stretched,)
        return stretched, self._bend(t, across / length[:, None, None])

    def _nodes(self, count: int) -> IndexArray:
        """[E, count] consecutive nodes."""
        return np.arange(len(self.rest_length) + 2 - count)[:, None] + np.arange(count)

    def _stretch(self, length: FloatArray, t: FloatArray, across: FloatArray) -> ElementMatrices:
        """Segments; K has the stiffness of tension across them, too."""
        stretch = np.maximum(length / self.rest_length - 1, 0.0)
        tension = self.stretch_stiffness * stretch
        axial = np.where(length > self.rest_length, self.stretch_stiffness / self.rest_length, 0.0)
        block = axial[:, None, None] * (np.eye(3) - across)
        block += (tension / length)[:, None, None] * across
        signs = np.array([[1.0, -1.0], [-1.0, 1.0]])
        pull = tension[:, None] * t
        return ElementMatrices(
            self._nodes(2),
            0.5 * tension * stretch * self.rest_length,
            np.stack((pull, -pull), axis=1),
            np.einsum("kl,eij->ekilj", signs, block),
        )

    def _bend(self, t: FloatArray, turn: FloatArray) -> ElementMatrices:
        """Energy EI/2l |t_2 - t_1|² of directions t; K leaves out how t turns beyond `turn`."""
        stiffness = 2 * self.bending_stiffness / (self.rest_length[1:] + self.rest_length[:-1])
        bend = t[1:] - t[:-1]
        # ∂bend/∂x of the nodes before, at and after the bend.
        B = np.stack((turn[:-1], -turn[:-1] - turn[1:], turn[1:]), axis=1)
        return ElementMatrices(
            self._nodes(3),
            0.5 * stiffness * (bend**2).sum(axis=1),
            -np.einsum("e,ekij,ej->eki", stiffness, B, bend),
            np.einsum("e,ekij,elmj->ekilm", stiffness, B, B, optimize=True),
        )
