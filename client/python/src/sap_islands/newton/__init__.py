"""Newton adapter: this solver in the solver slot of NVIDIA's Newton.

    solver = sap_islands.newton.SapSolver(model)
    for _ in range(steps):
        pipeline.collide(state_0, contacts)
        solver.step(state_0, state_1, control, contacts, dt)
        state_0, state_1 = state_1, state_0

In reduced coordinates: articulations are trees of joints, free bodies are bodies, and the worlds of
a model are islands of one call. Contacts, joint drives, joint limits, joint friction, passive
springs and dampers, and kinematic bodies are solved; what a model has besides is refused by name.
The solve is on the CPU; for a model on a GPU the state is copied each way.
"""

import importlib.util

if importlib.util.find_spec("newton") is None:
    raise ModuleNotFoundError(
        "sap_islands.newton needs Newton: pip install 'newton>=1.8,<2'", name="newton"
    )

from sap_islands.newton.material import Material
from sap_islands.newton.solver import SapSolver
from sap_islands.unsolved_policy import Unsolved, UnsolvedWarning

__all__ = ["Material", "SapSolver", "Unsolved", "UnsolvedWarning"]
