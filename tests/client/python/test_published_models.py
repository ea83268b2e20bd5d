"""Every model that dm_control, gymnasium, gymnasium-robotics and robosuite ship, nothing left out.

Each runs with random controls. In every fifth step law="mujoco" is compared with MuJoCo's Newton
solver from the same state; law="sap" simulates the model on its own. The agreement by kind of
constraint is printed.
"""

from __future__ import annotations

import importlib.util
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
import sap_islands as sap
import sap_islands.mujoco as adapter
from sap_islands.unsolved_policy import OnUnsolved

from support.mujoco_agreement import Difference, cost, difference, solve_tightly

pytestmark = pytest.mark.filterwarnings("ignore:the model selects")

PACKAGES = {"dm_control": 30, "gymnasium": 14, "gymnasium_robotics": 30, "robosuite": 26}
STEPS, EVERY = 150, 5
CONTROL = 0.1  # of the range of each control; with more, MuJoCo diverges in several models
BAR = 1e-6
# Its motors have ranges of 20 kN m; with a tenth of them MuJoCo diverges.
WITHOUT_CONTROL = "gr1/robot.xml"
# The least R of this gripper is 1e-15 of J M^-1 J'. Velocities rounded to doubles do not determine
# its forces, and MuJoCo's own answers differ; hence the cost is compared.
ILL_CONDITIONED = "jaco_three_finger_gripper.xml"

KIND = {int(kind): name for name, kind in mujoco.mjtConstraint.__members__.items()}


def models_of(package: str) -> Iterator[tuple[str, Any]]:
    """Name and model of every file of a package that is a model with degrees of freedom."""
    spec = importlib.util.find_spec(package)  # does not import the package and its dependencies
    assert spec is not None
    assert spec.submodule_search_locations
    root = Path(spec.submodule_search_locations[0])
    for path in sorted(root.rglob("*.xml")):
        name = path.relative_to(root)
        if any("test" in part for part in name.parts):
            continue
        try:
            model = mujoco.MjModel.from_xml_path(str(path))
        except ValueError:
            continue  # a part that others include, or a file that MuJoCo itself does not load
        if model.nv:
            yield str(name), model


def controls(model: mujoco.MjModel, seed: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Random controls of STEPS steps that change every 20 steps."""
    low, high = model.actuator_ctrlrange.T
    reach = np.where(model.actuator_ctrllimited, CONTROL * (high - low) / 2, CONTROL)
    middle = np.where(model.actuator_ctrllimited, np.clip(0.0, low, high), 0.0)
    rng = np.random.default_rng(seed)
    held = rng.uniform(-1, 1, (STEPS // 20 + 1, len(reach)))
    return np.repeat(middle + reach * held, 20, axis=0)[:STEPS]


def compare(
    model: mujoco.MjModel, client: sap.Client, scale: float, is_ill: bool
) -> dict[str, Difference]:
    """The largest differences from MuJoCo by kind of constraint."""
    data, ours, exact = (mujoco.MjData(model) for _ in range(3))
    worst: dict[str, Difference] = defaultdict(Difference)
    solve_tightly(model)
    with client.session() as session:
        for i, control in enumerate(scale * controls(model, seed=0)):
            data.ctrl[:] = control
            if i % EVERY == 0:
                mujoco.mj_copyData(ours, model, data)
                mujoco.mj_copyData(exact, model, data)
                integrator = model.opt.integrator
                if integrator == mujoco.mjtIntegrator.mjINT_RK4:
                    model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
                mujoco.mj_step(model, exact)
                how: OnUnsolved = "ignore" if is_ill else "raise"
                adapter.step(model, ours, session, law="mujoco", on_unsolved=how)
                model.opt.integrator = integrator
                if is_ill:
                    least = cost(model, exact, exact.qacc)
                    assert cost(model, exact, ours.qacc) <= least + 1e-14 * abs(least)
                    found = Difference()
                else:
                    found = difference(model, ours, exact)
                for kind in {KIND[int(kind)] for kind in exact.efc_type}:
                    worst[kind] = worst[kind].or_larger(found)
            mujoco.mj_step(model, data)
    return worst


def simulate(
    model: mujoco.MjModel, client: sap.Client, scale: float, on_unsolved: OnUnsolved
) -> None:
    """Simulates STEPS steps under law="sap"."""
    data = mujoco.MjData(model)
    with client.session() as session:
        for control in scale * controls(model, seed=1):
            data.ctrl[:] = control
            adapter.step(model, data, session, on_unsolved=on_unsolved)
            assert np.isfinite(data.qvel).all()
            assert np.isfinite(data.efc_force).all()
    bad = [warning.number for warning in data.warning]
    assert not any(bad[int(kind)] for kind in BAD_STATES)


BAD_STATES = (
    mujoco.mjtWarning.mjWARN_BADQPOS,
    mujoco.mjtWarning.mjWARN_BADQVEL,
    mujoco.mjtWarning.mjWARN_BADQACC,
)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_published_model_is_stepped_with_nothing_left_out(
    client: sap.Client,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    package: str,
) -> None:
    monkeypatch.chdir(tmp_path)  # MuJoCo writes its warnings to a file
    failed: list[str] = []
    kinds: dict[str, Difference] = defaultdict(Difference)
    count = 0
    for name, model in models_of(package):
        count += 1
        is_ill = name.endswith(ILL_CONDITIONED)
        scale = 0.0 if name.endswith(WITHOUT_CONTROL) else 1.0
        try:
            worst = compare(model, client, scale, is_ill)
            simulate(model, client, scale, "ignore" if is_ill else "raise")
        except (sap.SapError, AssertionError) as error:
            failed.append(f"{name}: {str(error).splitlines()[0]}")
            continue
        for kind, found in worst.items():
            kinds[kind] = kinds[kind].or_larger(found)
            if max(found) > BAR:
                failed.append(f"{name}: {kind} {found}")
    with capsys.disabled():
        print(f"\n{package}: {count} models")
        for kind in sorted(kinds):
            print(f"  {kind:28} v {kinds[kind].velocity:.1e}  forces {kinds[kind].force:.1e}")
        for line in failed:
            print(f"  {line}")
    assert count == PACKAGES[package]
    assert not failed
