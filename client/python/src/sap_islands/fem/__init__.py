"""Deformable bodies as coupled trees: implicit steps of finite elements, and their contacts.

    mesh = fem.grid((4, 4, 4), (0.1, 0.1, 0.1))
    body = fem.Solid(*mesh, density=1000, young=1e5, poisson=0.3)
    trees = fem.step(body, x, v, time_step, damping=0.01)

A body is N nodes of three velocities and elements between them. With the forces f of its elements
and their stiffness K at the positions x, damping D = d K and masses M at the nodes,

    A = M + δt D + δt² K,    v* = v + A^-1 δt (f + M g - D v - δt K v).

This is one Newton step of implicit Euler. Forces are exactly the gradient of the energy; K is
positive semidefinite by construction, so that A is positive definite at any positions. What K
leaves out of the second derivative of the energy, each law says; it changes the accuracy of a step,
not where the body comes to rest.

Materials are `Solid`, with the laws `corotated` and `neo_hookean`, `Membrane` and `Cable`; meshes
come from `grid`, `ball`, `sheet` and `read_mesh`. `contacts` writes contacts of points of a body
with what stands still, with another body, or with a tree or rigid body; `join_trees` and
`join_contacts` join all of it to one problem, and `release_gaps` takes the friction off contacts
that do not touch in the step.
"""

from sap_islands.fem.cable import Cable
from sap_islands.fem.contact import (
    Carried,
    Points,
    contact_frames,
    contacts,
    join_contacts,
    join_trees,
    release_gaps,
    weights_at,
)
from sap_islands.fem.elements import Density, ElementMatrices, Material, anchors
from sap_islands.fem.implicit_step import step
from sap_islands.fem.laws import Law, corotated, neo_hookean
from sap_islands.fem.membrane import Membrane
from sap_islands.fem.mesh import Mesh, ball, grid, read_mesh, sheet, surface
from sap_islands.fem.nearest import nearest_on_surface
from sap_islands.fem.solid import Solid

__all__ = [
    "Cable",
    "Carried",
    "Density",
    "ElementMatrices",
    "Law",
    "Material",
    "Membrane",
    "Mesh",
    "Points",
    "Solid",
    "anchors",
    "ball",
    "contact_frames",
    "contacts",
    "corotated",
    "grid",
    "join_contacts",
    "join_trees",
    "nearest_on_surface",
    "neo_hookean",
    "read_mesh",
    "release_gaps",
    "sheet",
    "step",
    "surface",
    "weights_at",
]
