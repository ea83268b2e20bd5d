"""Puts this solver in place of MuJoCo's in the running process."""

from __future__ import annotations

from sap_islands.replacement import Replacement, When


def replace_solver(when: When = "faster") -> Replacement:
    """Puts this solver in place of MuJoCo's for all steps of this process from now on.

    `mujoco.mj_step`, `mujoco.rollout` and what calls them stay as they are:

        replacement = sap_islands.mujoco.replace_solver()
        mujoco.mj_step(model, data)
        print(replacement.read())
        replacement.stop()

    A whole program is run so from outside, by `sap-islands run -- COMMAND`. That also catches what
    this cannot: with MuJoCo 3.14 to 3.17, `mujoco.mj_forwardSkip` called from Python, and in every
    version `mujoco.mj_fwdConstraint`.

    Args:
        when: "faster": steps in which it is predicted to be faster than MuJoCo's; "always": all
            steps that it can take. Others are left to MuJoCo: those of models with
            `noslip_iterations` or the solver PGS, or with flexes and the integrator discrete, and
            those with an island that needs more than `opt.iterations` iterations.

    Returns:
        The replacement, with the counts of the steps; of several, the last one counts. `stop` ends
        it.

    Raises:
        Unavailable: The library is not installed, or memory of MuJoCo cannot be written to.
    """
    replacement = Replacement("mujoco")
    replacement.start(when)
    return replacement
