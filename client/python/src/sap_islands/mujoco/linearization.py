"""Derivatives of a step with respect to state and control.

    next state = integrate(state, control, v),   v = solve(problem(state, control))

The derivative of the solve is the service's, exact at its solution. Those of the problem and of
the integration of velocities and activations are MuJoCo's finite differences, with the constraints
of the state held; the integration of positions has closed forms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import mujoco
import numpy as np

from sap_islands.arrays import FloatArray
from sap_islands.client import Client
from sap_islands.errors import InvalidArgument
from sap_islands.mujoco.assembly import Law
from sap_islands.mujoco.displacements import (
    Direction,
    Nominal,
    Side,
    direction,
    problem_and_tangents,
)
from sap_islands.mujoco.material import Material
from sap_islands.mujoco.native_calls import integrate
from sap_islands.mujoco.stepping import build_problem
from sap_islands.mujoco.unsupported_features import refuse_flexes
from sap_islands.options import Options
from sap_islands.problem import Problem, RegularizationRule
from sap_islands.unsolved_policy import (
    OnUnsolved,
    check_on_unsolved,
    report_inaccurate,
    report_unsolved,
)

_DEFAULT_MATERIAL = Material()
_CONVERGED = Options(relative_tolerance=1e-10)
_BALL, _FREE = int(mujoco.mjtJoint.mjJNT_BALL), int(mujoco.mjtJoint.mjJNT_FREE)
_TANGENTS_PER_CALL = 256  # within the limits of a server on derivatives and bytes
_SLEEP = int(mujoco.mjtEnableBit.mjENBL_SLEEP)
_NO_CLAMPING = int(mujoco.mjtDisableBit.mjDSBL_CLAMPCTRL)


class Linearization(NamedTuple):
    """A step and its derivatives. With tangents δx of the state: δx' = A δx + B δu.

    States have nv positions, nv velocities and na activations. Tangents of positions are those of
    `mujoco.mj_differentiatePos`: of a quaternion, rotation vectors in the frame of the body.

    Attributes:
        A: [2 nv + na, 2 nv + na] derivative of the next state with respect to the state.
        B: [2 nv + na, nu] derivative of the next state with respect to the controls.
        qpos: [nq] next positions.
        qvel: [nv] next velocities.
        act: [na] next activations.
        kink_margin: [islands] relative distance of each island from its nearest kink: a contact
            that begins to slide or opens, say. Near 0 the derivatives are those of one side.
    """

    A: FloatArray
    B: FloatArray
    qpos: FloatArray
    qvel: FloatArray
    act: FloatArray
    kink_margin: FloatArray


class _Response(NamedTuple):
    """How a problem and an integration at a given v follow one number of the state or control."""

    problem: Direction
    qvel: FloatArray
    act: FloatArray


def linearize(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    client: Client,
    *,
    law: Law = "sap",
    material: Material = _DEFAULT_MATERIAL,
    options: Options | None = None,
    on_unsolved: OnUnsolved = "warn",
    eps: float = 1e-6,
    centered: bool = True,
) -> Linearization:
    """Derivatives of a `step`, in the coordinates of `mujoco.mjd_transitionFD`.

    The constraints are those of the state: a contact that opens or closes within `eps` is not seen.
    Where collision detection finds others at a displaced state, see
    `sap_islands.mujoco.displacements`. Neither `eps` nor the tolerance of the solve limits the
    accuracy of the contact forces' derivatives by cancellation.

    Args:
        model: The model; not changed.
        data: The state, with controls and applied forces; not changed.
        client: The client that solves and differentiates.
        law: As for `build_problem`.
        material: As for `build_problem`.
        options: Options of the solve; None: a relative tolerance of 1e-10.
        on_unsolved: As for `step`.
        eps: Displacement of the finite differences [m, rad, and units of velocities, activations
            and controls].
        centered: Whether differences are central; False: forward, at half the cost.

    Raises:
        InvalidArgument: As for `build_problem`; or the model has flexes or enables sleep, `eps` is
            not positive, or the material's rule is LOAD_PATH.
        SapError: The problem could not be built, solved or differentiated.
    """
    check_on_unsolved(on_unsolved)
    _check(model, material, eps)
    if law == "coulomb":
        raise InvalidArgument("law is 'coulomb'; derivatives are of the convex model alone", "law")
    options = _CONVERGED if options is None else options
    work = mujoco.MjData(model)
    mujoco.mj_copyData(work, model, data)
    built = build_problem(model, work, law=law, material=material)
    solution = client.solve(built.problem, options)
    report_unsolved(solution, on_unsolved, data.time)
    nominal = Nominal(model, work, built, material, eps)
    displaced = _Displaced(model, data, work, nominal, solution.velocity, eps, centered)
    qvel, act, gain = displaced.integrate_nominal()
    responses = list(displaced.responses())
    problem, tangents = problem_and_tangents(nominal.side, [each.problem for each in responses])
    by_service, kink_margin = _velocity_derivatives(
        client, problem, tangents, solution.velocity, options, on_unsolved
    )
    columns = np.zeros((len(responses), 2 * model.nv + model.na))
    for column, response, velocity in zip(columns, responses, by_service, strict=True):
        column[model.nv :] = np.append(response.qvel + gain @ velocity, response.act)
    qpos, by_position, by_velocity = _integrate_positions(model, data.qpos, qvel)
    columns[:, : model.nv] = columns[:, model.nv : 2 * model.nv] @ by_velocity.T
    columns[: model.nv, : model.nv] += by_position.T
    states = 2 * model.nv + model.na
    return Linearization(
        columns[:states].T.copy(),
        columns[states:].T.copy(),
        qpos,
        qvel,
        act,
        kink_margin,
    )


def _check(model: mujoco.MjModel, material: Material, eps: float) -> None:
    """Raises InvalidArgument where there are no derivatives."""
    if not eps > 0:
        raise InvalidArgument(f"eps is {eps!r}; it must be positive", "eps")
    refuse_flexes(model, "derivatives")
    if model.opt.enableflags & _SLEEP:
        raise InvalidArgument("the model enables sleep, which linearize does not support", "model")
    if material.rule == RegularizationRule.LOAD_PATH:
        message = "material.rule is LOAD_PATH, whose regularization has no derivatives"
        raise InvalidArgument(message, "material.rule")


def _velocity_derivatives(
    client: Client,
    problem: Problem,
    tangents: Sequence[Problem],
    velocity: FloatArray,
    options: Options,
    on_unsolved: OnUnsolved,
) -> tuple[list[FloatArray], FloatArray]:
    """Derivatives of the solution along each tangent, and the kink margins."""
    found: list[FloatArray] = []
    kink_margin = np.empty(0)
    for first in range(0, len(tangents), _TANGENTS_PER_CALL):
        derivatives = client.differentiate(
            problem,
            tangents=tangents[first : first + _TANGENTS_PER_CALL],
            velocity=velocity,
            options=options,
        )
        report_inaccurate(derivatives, on_unsolved)
        found += [tangent.velocity for tangent in derivatives.tangents]
        kink_margin = derivatives.kink_margin
    return found, kink_margin


class _Displaced:
    """Displaces the state in `work`, one number at a time."""

    def __init__(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        work: mujoco.MjData,
        nominal: Nominal,
        velocity: FloatArray,
        eps: float,
        centered: bool,
    ) -> None:
        self._model, self._work, self._nominal = model, work, nominal
        self._velocity, self._eps, self._centered = velocity, eps, centered
        self._state = [array.copy() for array in self._arrays()]
        self._time = data.time

    def _arrays(self) -> tuple[FloatArray, ...]:
        work = self._work
        return work.qpos, work.qvel, work.act, work.ctrl

    def _restore(self) -> None:
        for array, values in zip(self._arrays(), self._state, strict=True):
            array[:] = values
        self._work.time = self._time

    def _integrate(self, velocity: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Velocities and activations after the step in which the solution is `velocity`."""
        model, work, law = self._model, self._work, self._nominal.law
        work.qacc[:] = (velocity - work.qvel) / model.opt.timestep
        if law == "mujoco":
            mujoco.mj_mulM(model, work, work.qfrc_constraint, work.qacc)
            work.qfrc_constraint -= work.qfrc_smooth
        integrate(model, work, law != "mujoco", velocity)
        return work.qvel.copy(), work.act.copy()

    def integrate_nominal(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Next velocities and activations, and how these velocities follow the solution: [nv, nv].

        MuJoCo's integrators are affine in the velocity of the solution.
        """
        qvel, act = self._integrate(self._velocity)
        gain = np.eye(self._model.nv)
        if self._nominal.law == "mujoco":
            for dof, unit in enumerate(np.eye(self._model.nv)):
                self._restore()
                gain[:, dof] = self._integrate(self._velocity + unit)[0] - qvel
        self._restore()
        self._at_rest = qvel, act
        return qvel, act, gain

    def responses(self) -> Iterator[_Response]:
        """The responses to positions, velocities, activations and controls, in this order."""
        model, work = self._model, self._work
        # The kinematics in `work` are those of the nominal positions until these are displaced.
        others = [
            self._response(self._by_adding(array, i), sides)
            for array, i, sides in (
                *((work.qvel, i, (1, -1)) for i in range(model.nv)),
                *((work.act, i, (1, -1)) for i in range(model.na)),
                *((work.ctrl, i, self._sides_of_control(i)) for i in range(model.nu)),
            )
        ]
        for dof in range(model.nv):
            yield self._response(self._by_moving(dof), (1, -1))
        yield from others

    def _sides_of_control(self, i: int) -> tuple[int, ...]:
        """The sides on which a control stays within its range; both where it is on none."""
        model = self._model
        is_clamped = model.actuator_ctrllimited[i] and not model.opt.disableflags & _NO_CLAMPING
        lower, upper = model.actuator_ctrlrange[i] if is_clamped else (-np.inf, np.inf)
        value = self._state[3][i]
        sides = tuple(s for s in (1, -1) if lower <= value + s * self._eps <= upper)
        return sides or (1, -1)

    def _by_adding(self, array: FloatArray, i: int) -> Callable[[float], Side]:
        def displace(displacement: float) -> Side:
            array[i] += displacement
            return self._nominal.at_velocities(self._work)

        return displace

    def _by_moving(self, dof: int) -> Callable[[float], Side]:
        unit = np.zeros(self._model.nv)
        unit[dof] = 1.0

        def displace(displacement: float) -> Side:
            mujoco.mj_integratePos(self._model, self._work.qpos, unit, displacement)
            return self._nominal.at_positions(self._work, dof, displacement)

        return displace

    def _response(self, displace: Callable[[float], Side], sides: tuple[int, ...]) -> _Response:
        if not self._centered:
            sides = sides[:1]
        found: list[tuple[float, Side, FloatArray, FloatArray]] = []
        for sign in sides:
            self._restore()
            side = displace(sign * self._eps)
            found.append((sign * self._eps, side, *self._integrate(self._velocity)))
        complete = [each for each in found if each[1].complete] or found
        one = complete[0]
        # One side alone is compared with the nominal state.
        other = (0.0, self._nominal.side, *self._at_rest) if len(complete) == 1 else complete[1]
        displacement = one[0] - other[0]
        self._restore()
        return _Response(
            direction(one[1], other[1], displacement),
            (one[2] - other[2]) / displacement,
            (one[3] - other[3]) / displacement,
        )


def _integrate_positions(
    model: mujoco.MjModel, qpos: FloatArray, qvel: FloatArray
) -> tuple[FloatArray, Any, Any]:
    """Positions after a step with a velocity; their derivatives by positions and velocities."""
    dt = model.opt.timestep
    by_position, by_velocity = np.eye(model.nv), dt * np.eye(model.nv)
    for kind, dof in zip(model.jnt_type, model.jnt_dofadr, strict=True):
        if kind in (_BALL, _FREE):
            first = dof if kind == _BALL else dof + 3
            at = slice(first, first + 3)
            by_quaternion, by_rotation, by_time = np.zeros(9), np.zeros(9), np.zeros(3)
            mujoco.mjd_quatIntegrate(qvel[at], dt, by_quaternion, by_rotation, by_time)
            by_position[at, at] = by_quaternion.reshape(3, 3)
            by_velocity[at, at] = dt * by_rotation.reshape(3, 3)
    end = qpos.copy()
    mujoco.mj_integratePos(model, end, qvel, dt)
    return end, by_position, by_velocity
