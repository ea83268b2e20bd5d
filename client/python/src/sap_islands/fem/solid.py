"""Solids of tetrahedra."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sap_islands.arrays import FloatArray, IndexArray
from sap_islands.errors import InvalidArgument
from sap_islands.fem.elements import ElementMatrices, Simplices, lumped_masses
from sap_islands.fem.laws import Law, corotated, lame_parameters


@dataclass(frozen=True)
class Solid:
    """Linear tetrahedra with an elastic law.

    They are too stiff in bending where they are few across a body, and lock as Poisson's ratio
    comes near 1/2.

    Attributes:
        rest: [N, 3] positions without stress [m].
        tetrahedra: [E, 4] corners, of positive volume.
        density: [kg/m³].
        young: Young's modulus [Pa].
        poisson: Poisson's ratio, below 1/2.
        law: `corotated` or `neo_hookean`.
    """

    rest: FloatArray
    tetrahedra: IndexArray
    density: float
    young: float
    poisson: float
    law: Law = corotated
    elements: Simplices = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Computes the gradients of the elements.

        Raises:
            InvalidArgument: A tetrahedron is flat or inverted.
        """
        corners = self.rest[self.tetrahedra]
        edges = (corners[:, 1:] - corners[:, :1]).transpose(0, 2, 1)
        flat = np.flatnonzero(~(np.linalg.det(edges) > 0))
        if flat.size:
            name = f"tetrahedra[{flat[0]}]"
            raise InvalidArgument(f"{name} has no positive volume", name)
        object.__setattr__(self, "elements", Simplices.of_edges(self.tetrahedra, edges))

    @property
    def masses(self) -> FloatArray:
        """[N] a quarter of each tetrahedron at its corners [kg]."""
        return lumped_masses(self.tetrahedra, self.density * self.elements.volumes, len(self.rest))

    def evaluate(self, x: FloatArray) -> tuple[ElementMatrices, ...]:
        """Its tetrahedra at positions x."""
        mu, lame = lame_parameters(self.young, self.poisson)
        return (self.elements.matrices(self.law(self.elements.deformation(x), mu, lame)),)
