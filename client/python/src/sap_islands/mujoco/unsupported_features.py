"""Features of models that a step does not support: refused, or warned about."""

from __future__ import annotations

import warnings
import weakref

import mujoco

from sap_islands.errors import InvalidArgument

_INTEGRATORS = mujoco.mjtIntegrator
# As ints: comparing enumerators of the bindings takes half a microsecond each.
_IMPLICIT = (int(_INTEGRATORS.mjINT_IMPLICIT), int(_INTEGRATORS.mjINT_IMPLICITFAST))
_DISCRETE = int(getattr(_INTEGRATORS, "mjINT_DISCRETE", -1))  # MuJoCo 3.13 and later
_STEPPED = (int(_INTEGRATORS.mjINT_EULER), *_IMPLICIT, _DISCRETE)
_IPC = int(getattr(mujoco.mjtEnableBit, "mjENBL_IPC", 0))  # MuJoCo 3.14 and later
_PGS = int(mujoco.mjtSolver.mjSOL_PGS)
# Numbers of mjModel that decide the lengths of arrays of mjData.
_SIZES = ("nq", "nv", "nbody", "njnt", "ngeom", "nsite", "ntendon", "neq", "nu", "na", "nM", "nD")
_MAX_LISTED = 3  # names of model elements in an error message

# Differences that the caller was warned about, by model.
_warned: weakref.WeakKeyDictionary[mujoco.MjModel, set[str]] = weakref.WeakKeyDictionary()


class DifferenceWarning(UserWarning):
    """A model selects a method of MuJoCo that a step by the service does not use."""


def refuse_unsupported(model: mujoco.MjModel) -> None:
    """Raises InvalidArgument if the model enables ipc, contacts of flexes as barriers."""
    if model.opt.enableflags & _IPC:
        message = "the model enables ipc, whose contacts are not those of a convex problem"
        raise InvalidArgument(message, "model")


def refuse_data_of_another(model: mujoco.MjModel, data: mujoco.MjData) -> None:
    """Raises InvalidArgument if the data were made for a model of other sizes.

    MuJoCo does not check it, and reads and writes beyond the arrays. A copy of the model with
    other numbers is no other model.
    """
    own = data.model
    if own is model:
        return
    for size in _SIZES:
        given, needed = getattr(own, size), getattr(model, size)
        if given != needed:
            message = f"data is of another model: {size} is {given} there, {needed} in the model"
            raise InvalidArgument(message, "data")


def refuse_flexes(model: mujoco.MjModel, what: str) -> None:
    """Raises InvalidArgument if the model has flexes, of which there are no `what`."""
    if not model.nflex:
        return
    names = [mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_FLEX, i) or i for i in range(model.nflex)]
    listed = ", ".join(f"flex {name!r}" for name in names[:_MAX_LISTED])
    more = ", ..." if len(names) > _MAX_LISTED else ""
    raise InvalidArgument(
        f"the model has flexes ({listed}{more}), of which there are no {what}", "model"
    )


def warn_of_differences(model: mujoco.MjModel) -> None:
    """Warns once per model about each method of MuJoCo that is selected and not used."""
    options = model.opt
    integrator, noslip, solver = options.integrator, options.noslip_iterations, options.solver
    if integrator in _STEPPED and noslip <= 0 and solver != _PGS:
        return
    found = []
    if integrator not in _STEPPED:
        name = _INTEGRATORS(integrator).name.removeprefix("mjINT_")
        found.append(f"integrator {name}: steps are semi-implicit Euler")
    if noslip > 0:
        found.append("noslip_iterations: there is no noslip solver; law='sap' holds what is held")
    if solver == _PGS:
        found.append("solver PGS: the problem is solved to convergence, and PGS may not have been")
    warned = _warned.setdefault(model, set())
    for difference in found:
        if difference not in warned:
            warned.add(difference)
            warnings.warn(f"the model selects {difference}", DifferenceWarning, stacklevel=4)
