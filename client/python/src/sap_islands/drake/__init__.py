"""Drake adapter: steps a MultibodyPlant with contacts solved by the service.

    config = MultibodyPlantConfig(time_step=0.01, discrete_contact_approximation="sap")
    plant, scene_graph = AddMultibodyPlant(config, builder)
    ...
    context = diagram.CreateDefaultContext()
    with sap_islands.connect("embedded:") as client, client.session() as session:
        while context.get_time() < 3.0:
            sap_islands.drake.step(plant, context, session)

The problem is that of Drake's own discrete solver with the contact approximation "sap": point
contacts, and hydroelastic surfaces with every polygon as a compliant contact point. Joint damping
and the PD controllers of actuators are part of A; joint limits become frictionless contacts.
Features that the service cannot represent (`UNSUPPORTED`) raise an error unless `ignore` names
them.

The caller drives the loop: `Simulator`, periodic events and loggers are not involved. Output ports
that the plant samples at its discrete updates, such as contact_results and reaction_forces, keep
their old values, since no such update takes place.
"""

import importlib.util

if importlib.util.find_spec("pydrake") is None:
    raise ModuleNotFoundError(
        "sap_islands.drake needs Drake: pip install 'drake>=1.51'", name="pydrake"
    )

from sap_islands.drake.stepping import BuiltProblem, build_problem, step
from sap_islands.drake.unsupported_features import UNSUPPORTED

__all__ = ["UNSUPPORTED", "BuiltProblem", "build_problem", "step"]
