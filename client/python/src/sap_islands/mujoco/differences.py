"""What a model asks of MuJoCo that a step by the service does not do: refused, or warned about."""

from __future__ import annotations

import warnings

import mujoco

from sap_islands.errors import InvalidArgument
from sap_islands.mujoco.layout import Layout

_INTEGRATORS = mujoco.mjtIntegrator
_IMPLICIT = (_INTEGRATORS.mjINT_IMPLICIT, _INTEGRATORS.mjINT_IMPLICITFAST)
_MAX_LISTED = 3  # names of model elements in an error message


class DifferenceWarning(UserWarning):
    """A model selects a method of MuJoCo that a step by the service does not use."""


def refuse_flexes(model: mujoco.MjModel) -> None:
    """Raises InvalidArgument if a model has flexes (deformable bodies); the message names them."""
    if not model.nflex:
        return
    names = [mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_FLEX, i) or i for i in range(model.nflex)]
    listed = ", ".join(f"flex {name!r}" for name in names[:_MAX_LISTED])
    more = ", ..." if len(names) > _MAX_LISTED else ""
    message = f"the model has flexes ({listed}{more}), which the service does not support"
    raise InvalidArgument(message, "model")


def warn_of_differences(model: mujoco.MjModel, layout: Layout) -> None:
    """Warns once per model about each method of MuJoCo that is selected and not used."""
    options = model.opt
    found = []
    if options.integrator not in (_INTEGRATORS.mjINT_EULER, *_IMPLICIT):
        name = _INTEGRATORS(options.integrator).name.removeprefix("mjINT_")
        found.append(f"integrator {name}: steps are semi-implicit Euler")
    if options.noslip_iterations > 0:
        found.append("noslip_iterations: there is no noslip solver; law='sap' holds what is held")
    if options.solver == mujoco.mjtSolver.mjSOL_PGS:
        found.append("solver PGS: the problem is solved to convergence, and PGS may not have been")
    for difference in found:
        if difference not in layout.warned:
            layout.warned.add(difference)
            warnings.warn(f"the model selects {difference}", DifferenceWarning, stacklevel=4)


def uses_implicit_integrator(model: mujoco.MjModel) -> bool:
    """Whether the model selects the integrator implicit or implicitfast."""
    return model.opt.integrator in _IMPLICIT
