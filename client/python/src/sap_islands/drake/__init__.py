"""Contacts of a Drake model, solved by the service.

    plant, scene_graph = AddMultibodyPlantSceneGraph(builder, time_step=0.01)
    ...
    context = diagram.CreateDefaultContext()
    with sap_islands.connect("embedded:") as client, client.session() as session:
        while context.get_time() < 3.0:
            sap_islands.drake.step(plant, context, session)

The problem is the one that Drake's own discrete solver is given, for the contact approximation
"sap": point contacts, and hydroelastic surfaces with every polygon as a compliant point. Damping of
joints and PD controllers of actuators are part of A; limits of joints become contacts without
friction. What the service has no constraint for is refused by name (`UNSUPPORTED`), unless the
caller lists it in `ignore`.
"""

import importlib.util

if importlib.util.find_spec("pydrake") is None:
    raise ModuleNotFoundError(
        "sap_islands.drake needs Drake: pip install 'drake>=1.51'", name="pydrake"
    )

from sap_islands.drake.stepping import BuiltProblem, build_problem, step
from sap_islands.drake.unsupported_features import UNSUPPORTED

__all__ = ["UNSUPPORTED", "BuiltProblem", "build_problem", "step"]
