"""Runs of MuJoCo itself as `sap_islands.certify` reads them, and steps with planted faults."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import pytest
from numpy.typing import NDArray
from record_mujoco_warp import CONTACT
from sap_islands.arrays import FloatArray
from sap_islands.referee.contacts import make_contacts, put_contacts

from support.mujoco_agreement import solve_tightly

Run = dict[str, NDArray[Any]]
INPUTS = ("act", "ctrl", "qfrc_applied", "xfrc_applied", "mocap_pos", "eq_active")


def controls_of(model: mujoco.MjModel, seed: int, steps: int) -> FloatArray:
    """[steps, nu] controls that change in every step, within their ranges or [-1, 1]."""
    random = np.random.default_rng(seed).uniform(-1, 1, (steps, model.nu))
    has_range = model.actuator_ctrllimited.astype(bool)[: model.nu]
    low, high = np.where(has_range, model.actuator_ctrlrange[: model.nu].T, [[-1.0], [1.0]])
    controls: FloatArray = 0.5 * (low + high) + 0.5 * (high - low) * random
    return controls


def record(
    model: mujoco.MjModel,
    steps: int,
    *,
    seed: int = 0,
    with_contacts: bool = False,
    world: int = 0,
    pushed: bool = False,
    skip: int = 0,
) -> Run:
    """Steps of MuJoCo's own simulation with random controls and random velocities at first.

    Args:
        model: The model.
        steps: How many.
        seed: Of the numbers.
        with_contacts: Whether contacts are recorded.
        world: Number of the world.
        pushed: Whether all other inputs change too, and are recorded.
        skip: Steps before those that are recorded.
    """
    data, random = mujoco.MjData(model), np.random.default_rng(seed)
    data.qvel[:] = 0.3 * random.normal(size=model.nv)
    mujoco.mj_step(model, data, skip)
    controls = controls_of(model, seed, steps)
    inputs = INPUTS if pushed else ("act", "ctrl")
    rows: dict[str, list[Any]] = {
        name: [] for name in ("qpos", "qvel", *inputs, "time", "world", "next_qvel")
    }
    contacts: dict[str, list[Any]] = {name: [] for name in ("state", *CONTACT)}
    for step in range(steps):
        data.ctrl[:] = controls[step]
        if pushed:
            _push(model, data, random)
        for name in ("qpos", "qvel", *inputs):
            rows[name].append(getattr(data, name).copy())
        rows["time"].append(data.time)
        rows["world"].append(world)
        mujoco.mj_step(model, data)
        rows["next_qvel"].append(data.qvel.copy())
        contacts["state"].append(np.full(data.ncon, step))
        for name in CONTACT:
            contacts[name].append(getattr(data.contact, name).copy())
    run = {name: np.array(values) for name, values in rows.items()}
    if with_contacts:
        run |= {f"contact_{name}": np.concatenate(values) for name, values in contacts.items()}
    return run


def _push(model: mujoco.MjModel, data: mujoco.MjData, random: np.random.Generator) -> None:
    """Other forces, places of mocap bodies, and equalities that are on."""
    data.qfrc_applied[:] = random.normal(size=model.nv)
    data.xfrc_applied[1:] = random.normal(size=(model.nbody - 1, 6))
    data.mocap_pos += 0.01 * random.normal(size=data.mocap_pos.shape)
    data.eq_active[:] = random.uniform(size=model.neq) < 0.7


def joined(runs: list[Run]) -> Run:
    """Runs of several worlds, state by state in turn, as a fleet records them."""
    order = np.argsort(np.concatenate([np.arange(len(run["qpos"])) for run in runs]), kind="stable")
    return {name: np.concatenate([run[name] for run in runs])[order] for name in runs[0]}


def place(model: mujoco.MjModel, run: Run, state: int) -> mujoco.MjData:
    """A recorded state before its step."""
    data = mujoco.MjData(model)
    for name in ("qpos", "qvel", *INPUTS):
        if name in run:
            getattr(data, name)[:] = run[name][state]
    return data


def step_from(model: mujoco.MjModel, run: Run, state: int, steps: int = 1) -> FloatArray:
    """Velocity after steps of MuJoCo from a recorded state; the model may be another."""
    data = place(model, run, state)
    mujoco.mj_step(model, data, steps)
    return np.array(data.qvel)


def step_with(
    model: mujoco.MjModel, run: Run, state: int, contacts: dict[str, NDArray[Any]]
) -> FloatArray:
    """Velocity after MuJoCo's step from a recorded state with contacts in place of its own."""
    data = place(model, run, state)
    mujoco.mj_fwdPosition(model, data)
    put_contacts(model, data, make_contacts(contacts))
    mujoco.mj_makeConstraint(model, data)
    mujoco.mj_island(model, data)
    for stage in ("Velocity", "Actuation", "Acceleration", "Constraint"):
        getattr(mujoco, f"mj_fwd{stage}")(model, data)
    is_euler = model.opt.integrator == mujoco.mjtIntegrator.mjINT_EULER
    (mujoco.mj_Euler if is_euler else mujoco.mj_implicit)(model, data)
    return np.array(data.qvel)


def found_contacts(
    model: mujoco.MjModel, run: Run, state: int
) -> tuple[dict[str, NDArray[Any]], list[tuple[int, ...]]]:
    """Contacts that MuJoCo finds in a recorded state, and their pairs of geoms."""
    data = place(model, run, state)
    mujoco.mj_fwdPosition(model, data)
    contacts = {
        name: getattr(data.contact, name).copy() for name in CONTACT if name != "efc_address"
    }
    return contacts, [tuple(sorted(pair)) for pair in contacts["geom"].tolist()]


def error_of(model: mujoco.MjModel, run: Run, state: int, right: FloatArray) -> float:
    """The error of a recorded velocity against the right one, by MuJoCo's own numbers."""
    data = place(model, run, state)
    mujoco.mj_forward(model, data)
    mass = np.empty((model.nv, model.nv))
    mujoco.mj_fullM(model, data, mass)
    by_constraints = model.opt.timestep * (data.qacc - data.qacc_smooth)
    scale = max(float(np.sqrt(v @ mass @ v)) for v in (right, by_constraints))
    difference = run["next_qvel"][state] - right
    return float(np.sqrt(difference @ mass @ difference)) / scale


def with_row(run: Run, name: str, row: Any, value: Any) -> Run:
    """The run with another row of an array, or other rows."""
    values = run[name].copy()
    values[row] = value
    return {**run, name: values}


def changed(model: mujoco.MjModel, change: Callable[[mujoco.MjModel], object]) -> mujoco.MjModel:
    """A copy of the model that differs from it."""
    other = copy.copy(model)
    change(other)
    return other


def with_flag(name: str) -> Callable[[mujoco.MjModel], None]:
    def change(model: mujoco.MjModel) -> None:
        if hasattr(mujoco.mjtDisableBit, f"mjDSBL_{name}"):
            model.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{name}"))
        elif hasattr(mujoco.mjtEnableBit, f"mjENBL_{name}"):
            model.opt.enableflags |= int(getattr(mujoco.mjtEnableBit, f"mjENBL_{name}"))
        else:
            pytest.skip(f"this MuJoCo has no flag {name}")

    return change


def with_option(name: str, value: Any) -> Callable[[mujoco.MjModel], None]:
    return lambda model: setattr(model.opt, name, value)


def with_integrator(name: str) -> Callable[[mujoco.MjModel], None]:
    def change(model: mujoco.MjModel) -> None:
        if not hasattr(mujoco.mjtIntegrator, f"mjINT_{name}"):
            pytest.skip(f"this MuJoCo has no integrator {name}")
        model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{name}")
        model.opt.tolerance = 1e-15  # at 0 its conjugate gradients end in 0 / 0

    return change


def with_fluid(model: mujoco.MjModel) -> None:
    model.opt.density, model.opt.viscosity = 1000.0, 0.1


RUN_OPTIONS: dict[str, Callable[[mujoco.MjModel], None]] = {
    "Euler": lambda _: None,
    "Euler, explicit damping": with_flag("EULERDAMP"),
    "implicit": with_option("integrator", mujoco.mjtIntegrator.mjINT_IMPLICIT),
    "implicitfast": with_option("integrator", mujoco.mjtIntegrator.mjINT_IMPLICITFAST),
    "discrete": with_integrator("DISCRETE"),
    "elliptic": with_option("cone", mujoco.mjtCone.mjCONE_ELLIPTIC),
    "impratio": with_option("impratio", 20.0),
    "no warm start": with_flag("WARMSTART"),
    "no islands": with_flag("ISLAND"),
    "no multiccd": with_flag("MULTICCD"),
    "no nativeccd": with_flag("NATIVECCD"),
    "diagexact": with_flag("DIAGEXACT"),
    "speculative": with_flag("SPECULATIVE"),
    "fluid": with_fluid,
}


def workshop() -> mujoco.MjModel:
    model = mujoco.MjModel.from_xml_string(WORKSHOP)
    solve_tightly(model)
    return model


WORKSHOP = """
<mujoco>
  <option timestep="0.005"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1"/>
    <body name="low" pos="0 0 .1"><freejoint/><geom name="low" type="box" size=".1 .1 .1"/></body>
    <body name="high" pos=".05 .02 .3"><freejoint/>
      <geom name="high" type="box" size=".1 .1 .1"/></body>
    <body name="ball" pos=".6 0 .1"><freejoint/><geom name="ball" size=".1"/></body>
    <body name="upper" pos="0 1 1">
      <joint name="shoulder" axis="0 1 0" range="-40 40" damping=".2"/>
      <geom name="upper" type="capsule" size=".04" fromto="0 0 0 .3 0 0"/>
      <body name="fore" pos=".3 0 0">
        <joint name="elbow" axis="0 1 0" range="-60 60" damping=".2"/>
        <geom name="fore" type="capsule" size=".04" fromto="0 0 0 .3 0 0"/>
        <body pos=".3 0 0"><joint name="wrist" axis="0 1 0" damping=".05"/>
          <geom type="capsule" size=".04" fromto="0 0 0 .1 0 0"/>
          <body pos=".1 0 0"><joint name="finger" axis="0 0 1" damping=".05"/>
            <geom type="capsule" size=".03" fromto="0 0 0 .1 0 0"/></body></body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position joint="shoulder" kp="60" forcerange="-8 8" ctrlrange="-2 2"/>
    <motor joint="elbow" ctrlrange="-3 3"/>
  </actuator>
</mujoco>"""
