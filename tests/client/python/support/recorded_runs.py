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

from support.mujoco_agreement import solve_tightly

Run = dict[str, NDArray[Any]]
Before = Callable[[mujoco.MjModel, mujoco.MjData], None]


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
) -> Run:
    """Steps of MuJoCo's own simulation with random controls and random velocities at first."""
    data = mujoco.MjData(model)
    data.qvel[:] = 0.3 * np.random.default_rng(seed).normal(size=model.nv)
    controls = controls_of(model, seed, steps)
    rows: dict[str, list[Any]] = {
        name: [] for name in ("qpos", "qvel", "act", "ctrl", "time", "world", "next_qvel")
    }
    contacts: dict[str, list[Any]] = {name: [] for name in ("state", *CONTACT)}
    for step in range(steps):
        data.ctrl[:] = controls[step]
        for name in ("qpos", "qvel", "act", "ctrl"):
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


def joined(runs: list[Run]) -> Run:
    """Runs of several worlds, state by state in turn, as a fleet records them."""
    order = np.argsort(np.concatenate([np.arange(len(run["qpos"])) for run in runs]), kind="stable")
    return {name: np.concatenate([run[name] for run in runs])[order] for name in runs[0]}


def step_from(model: mujoco.MjModel, run: Run, state: int) -> FloatArray:
    """Velocity after a step of MuJoCo from a recorded state; the model may be another."""
    data = mujoco.MjData(model)
    for name in ("qpos", "qvel", "act", "ctrl"):
        getattr(data, name)[:] = run[name][state]
    mujoco.mj_step(model, data)
    return np.array(data.qvel)


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
