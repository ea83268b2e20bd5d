"""Cloth and shells: triangles that resist strain, and hinges between them that resist bending.

A hinge is an edge of length l between triangles of areas a and b. With its angle θ, 0 where flat,
and the flexural rigidity D = Y h³ / 12 (1 - ν²) of a sheet of thickness h,

    E = 1/2 D l² / (a + b) (θ - θ_rest)²

On equilateral triangles this is the bending energy of a plate with Poisson's ratio 1/3, in all
directions [Seung, Nelson 1988]. On the squares of `sheet` it is that of a plate that is rolled
along the sides, and 3/2 times that along the diagonals; a free strip of them bends 1.2 times as
far as a beam.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sap_islands.arrays import FloatArray, IndexArray
from sap_islands.errors import InvalidArgument
from sap_islands.fem.elements import ElementMatrices, Simplices, lumped_masses
from sap_islands.fem.laws import membrane, plane_stress_parameters
from sap_islands.fem.mesh import hinges


@dataclass(frozen=True)
class Membrane:
    """Triangles with bending between neighbors.

    Attributes:
        rest: [N, 3] positions without stress, flat or curved [m].
        triangles: [E, 3] corners, consistently oriented.
        thickness: h [m].
        density: [kg/m³].
        young: Young's modulus [Pa].
        poisson: Poisson's ratio.
        rigidity: D [N m]; None: that of a plate of this thickness.
    """

    rest: FloatArray
    triangles: IndexArray
    thickness: float
    density: float
    young: float
    poisson: float
    rigidity: float | None = None
    elements: Simplices = field(init=False, repr=False)
    folds: IndexArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Computes the gradients of the elements and finds the hinges.

        Raises:
            InvalidArgument: A triangle has no area, or neighbors are not oriented alike.
        """
        corners = self.rest[self.triangles]
        first, second = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
        length = np.linalg.norm(first, axis=1)
        doubled = np.linalg.norm(np.cross(first, second), axis=1)
        flat = np.flatnonzero(~(doubled > 0))
        if flat.size:
            raise InvalidArgument(f"triangles[{flat[0]}] has no area", f"triangles[{flat[0]}]")
        # Edges in a plane whose first axis is the first edge.
        edges = np.zeros((len(corners), 2, 2))
        edges[:, 0, 0] = length
        edges[:, 0, 1] = np.einsum("ei,ei->e", first, second) / length
        edges[:, 1, 1] = doubled / length
        elements = Simplices.of_edges(self.triangles, edges, self.thickness)
        object.__setattr__(self, "elements", elements)
        object.__setattr__(self, "folds", hinges(self.triangles))

    @property
    def masses(self) -> FloatArray:
        """[N] a third of each triangle at its corners [kg]."""
        return lumped_masses(self.triangles, self.density * self.elements.volumes, len(self.rest))

    def evaluate(self, x: FloatArray) -> tuple[ElementMatrices, ...]:
        """Its triangles and its hinges at positions x."""
        mu, lame = plane_stress_parameters(self.young, self.poisson)
        strained = self.elements.matrices(membrane(self.elements.deformation(x), mu, lame))
        return strained, self._bend(x)

    def _bend(self, x: FloatArray) -> ElementMatrices:
        """The hinges. K leaves out the curvature of θ, by which a moment acts on the nodes."""
        D = self.rigidity
        if D is None:
            D = self.young * self.thickness**3 / (12 * (1 - self.poisson**2))
        ends = self.rest[self.folds]
        length = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)
        angle_at_rest, _, areas = _angles(ends)
        angle, slope, _ = _angles(x[self.folds])
        stiffness = D * length**2 / areas
        bent = angle - angle_at_rest
        return ElementMatrices(
            self.folds,
            0.5 * stiffness * bent**2,
            -(stiffness * bent)[:, None, None] * slope,
            np.einsum("e,eki,elj->ekilj", stiffness, slope, slope, optimize=True),
        )


def _angles(corners: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Angle [H], its gradient [H, 4, 3] and the area of both triangles [H] of hinges [H, 4, 3].

    Corners are the ends of the edge, that opposite of it on its left, and that on its right.
    """
    edge, left = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    right = corners[:, 3] - corners[:, 0]
    length = np.linalg.norm(edge, axis=1)
    normals = np.cross(edge, left), np.cross(right, edge)
    doubled = [np.linalg.norm(n, axis=1) for n in normals]
    units = [n / size[:, None] for n, size in zip(normals, doubled, strict=True)]
    sine = np.einsum("ei,ei->e", np.cross(*units), edge) / length
    angle = np.arctan2(sine, np.einsum("ei,ei->e", *units))
    # An opposite corner at height 2a/l turns its triangle by 1/height along the normal; the ends
    # of the edge move with its foot, so that nothing turns if all move alike.
    slopes = [-(length / size)[:, None] * n for n, size in zip(units, doubled, strict=True)]
    feet = [(np.einsum("ei,ei->e", side, edge) / length**2)[:, None] for side in (left, right)]
    first = sum(-(1 - foot) * slope for foot, slope in zip(feet, slopes, strict=True))
    second = sum(-foot * slope for foot, slope in zip(feet, slopes, strict=True))
    return angle, np.stack((first, second, *slopes), axis=1), 0.5 * (doubled[0] + doubled[1])
