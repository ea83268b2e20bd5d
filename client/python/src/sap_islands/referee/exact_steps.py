"""The exact step of a recorded state: its problem under MuJoCo's law, and where a solution leads.

Contacts are the recorded ones, and MuJoCo's own of pairs of geoms that the recording lacks; without
recorded contacts all are MuJoCo's.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Literal, TypeAlias

import mujoco
import numpy as np

from sap_islands.arrays import FloatArray
from sap_islands.errors import Internal, InvalidArgument
from sap_islands.mujoco.assembly import BuiltProblem, assemble_problem
from sap_islands.mujoco.native_calls import Stage, compute, integrate
from sap_islands.mujoco.stepping import DEFAULT_MATERIAL
from sap_islands.mujoco.unsupported_features import refuse_unsupported
from sap_islands.referee.contacts import make_contacts, merge_contacts, put_contacts
from sap_islands.referee.runs import State

ContactSource: TypeAlias = Literal["merged", "recorded", "found"]
# Changes contacts in MjData before their constraints are made.
Edit: TypeAlias = Callable[[mujoco.MjData], None]

_RK4 = int(mujoco.mjtIntegrator.mjINT_RK4)
_SLEEP = int(mujoco.mjtEnableBit.mjENBL_SLEEP)
_SLOW = 1e-3  # of the velocity that a step of free fall, or of 1 m/s², adds


class ExactSteps:
    """Problems of recorded states of one model.

    Attributes:
        model: A copy of the model; changed only for a time, by counterfactuals.
        sleeps: Whether the simulated model lets trees sleep.
        slow: Velocity that is the smallest scale of errors [m/s, rad/s].
    """

    def __init__(self, model: mujoco.MjModel) -> None:
        """Copies the model.

        Raises:
            InvalidArgument: The model enables ipc, has no degrees of freedom, or its integrator is
                RK4.
        """
        refuse_unsupported(model)
        if model.opt.integrator == _RK4:
            message = "the model selects the integrator RK4, of which one step is four problems"
            raise InvalidArgument(message, "opt.integrator")
        if not model.nv:
            raise InvalidArgument("the model has no degrees of freedom", "model")
        self.model = copy.copy(model)
        self.sleeps = bool(model.opt.enableflags & _SLEEP)
        self.model.opt.enableflags &= ~_SLEEP
        gravity = max(float(np.linalg.norm(model.opt.gravity)), 1.0)
        self.slow = _SLOW * model.opt.timestep * gravity
        self._initial = mujoco.MjData(self.model)
        self._after_resets: list[tuple[str, FloatArray]] = []

    def new_data(self) -> mujoco.MjData:
        """Memory for a state."""
        return mujoco.MjData(self.model)

    def place(self, data: mujoco.MjData, state: State) -> None:
        """Sets positions, velocities and inputs, recorded or assumed."""
        mujoco.mj_copyData(data, self.model, self._initial)
        for name, values in state.inputs.items():
            getattr(data, name)[:] = values
        self.restore(data, state)

    def restore(self, data: mujoco.MjData, state: State) -> None:
        """Restores what an integration has changed; derived quantities are still valid."""
        data.qpos[:] = state.qpos
        data.qvel[:] = state.qvel
        data.act[:] = state.inputs.get("act", self._initial.act)
        data.time = 0.0 if np.isnan(state.time) else state.time

    def build(
        self,
        data: mujoco.MjData,
        state: State,
        *,
        contacts: ContactSource = "merged",
        edit: Edit | None = None,
    ) -> BuiltProblem:
        """Places a state and builds its problem, with the recorded velocity as its guess.

        Args:
            data: Memory; changed.
            state: The state.
            contacts: "merged": the recorded ones and MuJoCo's of pairs that are not recorded;
                "recorded": these alone; "found": MuJoCo's alone. Without recorded ones: "found".
            edit: Changes the contacts.

        Raises:
            InvalidArgument: The memory of the model does not hold the constraints of the state.
        """
        try:
            self._compute(data, state, contacts, edit)
        except (mujoco.FatalError, Internal) as error:
            reason = " ".join(str(error).split()).removeprefix("MuJoCo: ")  # its lines as one
            raise self._refusal(state, f"MuJoCo fails: {reason}") from None
        if data.warning.number.any():
            kind = mujoco.mjtWarning(int(np.flatnonzero(data.warning.number)[0])).name
            raise self._refusal(state, f"MuJoCo reports {kind}")
        built = assemble_problem(self.model, data, "mujoco", DEFAULT_MATERIAL)
        # Most recorded steps are nearly right, and the certificate is that of the answer from any
        # guess.
        built.problem.trees.guess_velocity[:] = state.next_qvel
        return built

    def _refusal(self, state: State, reason: str) -> InvalidArgument:
        message = f"state {state.number} (world {state.world}): {reason}"
        return InvalidArgument(message, f"qpos[{state.number}]")

    def _compute(
        self, data: mujoco.MjData, state: State, contacts: ContactSource, edit: Edit | None
    ) -> None:
        """The stages of a step that precede MuJoCo's constraint solver."""
        model = self.model
        self.place(data, state)
        mujoco.mj_fwdPosition(model, data)
        if state.contacts is not None and contacts != "found":
            recorded = make_contacts(state.contacts)
            merged = contacts == "merged"
            put_contacts(model, data, merge_contacts(model, data, recorded) if merged else recorded)
            compute(model, data, False, Stage.CONSTRAINTS)
        if edit is not None and data.ncon:
            edit(data)
            data.contact.efc_address[:] = -1  # MuJoCo leaves that of a contact without rows
            compute(model, data, False, Stage.CONSTRAINTS)
        mujoco.mj_fwdVelocity(model, data)
        compute(model, data, False, Stage.FORCES, controls=False)

    def after_resets(self) -> list[tuple[str, FloatArray]]:
        """Velocities that a reset leads to: of qpos0 and keyframes, and MuJoCo's steps from them.

        A simulator that finds a state to have diverged resets it, and may then make its step.
        """
        if not self._after_resets:
            model, data = self.model, self.new_data()
            for key in range(-1, model.nkey):
                name = "qpos0" if key < 0 else f"keyframe {key}"
                mujoco.mj_resetData(model, data)
                if key >= 0:
                    mujoco.mj_resetDataKeyframe(model, data, key)
                self._after_resets.append((name, data.qvel.copy()))
                mujoco.mj_step(model, data)
                self._after_resets.append((f"a step from {name}", data.qvel.copy()))
        return self._after_resets

    def next_velocity(self, data: mujoco.MjData, velocity: FloatArray) -> FloatArray:
        """[nv] velocity after the model's integrator, for the solution of a problem just built."""
        model = self.model
        data.qacc[:] = (velocity - data.qvel) / model.opt.timestep
        mujoco.mj_mulM(model, data, data.qfrc_constraint, data.qacc)
        data.qfrc_constraint -= data.qfrc_smooth
        integrate(model, data, False, velocity)
        velocity_after: FloatArray = data.qvel.copy()
        return velocity_after
