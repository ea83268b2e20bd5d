"""Python functions that the program has set for MuJoCo to call within a step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mujoco
import numpy as np
import pytest
import sap_islands as sap
import sap_islands.mujoco as adapter
from sap_islands.mujoco.callbacks import without_callbacks

from support.program import run_program

STATE = mujoco.mjtState.mjSTATE_FULLPHYSICS

# Has an element for every callback.
MODEL = """
<mujoco><option timestep=".002"/><worldbody><geom type="plane" size="3 3 .1"/>
  <body pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
  <body pos="0 0 .35"><freejoint/><geom size=".1"/></body>
  <body pos="1 0 1"><joint name="j" axis="0 1 0"/>
    <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/></body></worldbody>
<actuator><motor joint="j"/>
  <general joint="j" dyntype="user" gaintype="user" biastype="user" gainprm="1"/></actuator>
<sensor><user dim="1" needstage="acc"/></sensor></mujoco>"""

PROGRAM = """
import mujoco
{first}
model = mujoco.MjModel.from_xml_string('''{model}''')
data, called = mujoco.MjData(model), set()

def callback(name, answer):
    def function(*arguments):
        assert not arguments or arguments[0] is model, name
        called.add(name)
        return answer
    return function

answers = dict(control=None, passive=None, contactfilter=0, sensor=None, act_dyn=0.1,
               act_gain=2.0, act_bias=0.3, time=0.0)
functions = {{name: callback(name, answer) for name, answer in answers.items()}}
for name, function in functions.items():
    getattr(mujoco, "set_mjcb_" + name)(function)
{second}
with sap.connect("embedded:") as client:
    adapter.advance(model, data)
    adapter.step(model, data, client)
    adapter.linearize(model, data, client)
adapter.find_contacts_within(model, 0.001)
for name, function in functions.items():
    assert getattr(mujoco, "get_mjcb_" + name)() is function
print(sorted(called - {{"time"}}))
"""
IMPORTS = "import sap_islands as sap, sap_islands.mujoco as adapter"


@pytest.fixture(autouse=True)
def no_callbacks_are_left() -> Iterator[None]:
    yield
    for name in dir(mujoco):
        if name.startswith("set_mjcb_"):
            getattr(mujoco, name)(None)


@pytest.mark.parametrize("imports", [(IMPORTS, ""), ("", IMPORTS)], ids=["before", "after"])
def test_callbacks_may_be_set_before_the_first_step_and_are_called_for_the_model_alone(
    imports: tuple[str, str],
) -> None:
    result = run_program(PROGRAM.format(model=MODEL, first=imports[0], second=imports[1]))
    assert result.returncode == 0, result.stderr
    names = ["act_bias", "act_dyn", "act_gain", "contactfilter", "control", "passive", "sensor"]
    assert result.stdout == f"{names}\n"


def test_callbacks_are_put_back_after_an_error() -> None:
    def control(*_: Any) -> None:
        pass

    mujoco.set_mjcb_control(control)
    with pytest.raises(ZeroDivisionError), without_callbacks():
        assert mujoco.get_mjcb_control() is None
        raise ZeroDivisionError
    assert mujoco.get_mjcb_control() is control


class Stop(BaseException):
    """An exception of the program that is no Exception."""


def calls(model: Any, client: sap.Client) -> dict[str, Any]:
    """Ways to step."""
    state = np.zeros(mujoco.mj_stateSize(model, STATE))
    mujoco.mj_getState(model, mujoco.MjData(model), state, STATE)
    states = np.tile(state, (5, 1))

    def rollout(*client: Any, **more: Any) -> Any:
        return lambda _: adapter.rollout(model, states, None, *client, nstep=3, **more)

    return {
        "advance": lambda data: adapter.advance(model, data[0], law="mujoco"),
        "advance_batch": lambda data: adapter.advance_batch(model, data, law="mujoco"),
        "advance_batch on threads": lambda data: adapter.advance_batch(model, data, threads=3),
        "step": lambda data: adapter.step(model, data[0], client, law="mujoco"),
        "step_batch": lambda data: adapter.step_batch(model, data, client),
        "linearize": lambda data: adapter.linearize(model, data[0], client),
        "rollout": rollout(client),
        "rollout on a thread": rollout(),
        "rollout on threads": rollout(threads=3),
    }


NAMES = ["control", "passive", "contactfilter", "sensor", "act_dyn", "act_gain", "act_bias"]


@pytest.mark.parametrize("integrator", ["EULER", "DISCRETE"])
@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, Stop])
def test_what_a_callback_raises_is_raised_and_nothing_is_advanced(
    client: sap.Client, kind: type[BaseException], integrator: str
) -> None:
    if not hasattr(mujoco.mjtIntegrator, f"mjINT_{integrator}"):
        pytest.skip(f"this MuJoCo has no integrator {integrator}")
    model = mujoco.MjModel.from_xml_string(MODEL)
    model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator}")
    raised: list[BaseException] = []

    def callback(*_: Any) -> None:
        raised.append(kind("of the program"))
        raise raised[-1]

    for name in NAMES:
        for call, step in calls(model, client).items():
            if (name, call) == ("sensor", "linearize"):
                continue  # it computes no sensors
            data = [mujoco.MjData(model) for _ in range(5)]
            getattr(mujoco, f"set_mjcb_{name}")(callback)
            with pytest.raises(kind, match="of the program") as caught:
                step(data)
            assert any(caught.value is each for each in raised), (name, call)
            assert not any(each.time for each in data), (name, call)
            getattr(mujoco, f"set_mjcb_{name}")(None)
            adapter.advance(model, data[0])  # nothing is left of it
            assert data[0].time == model.opt.timestep


def test_an_answer_of_a_callback_that_is_no_number_is_a_type_error() -> None:
    model = mujoco.MjModel.from_xml_string(MODEL)
    mujoco.set_mjcb_act_gain(lambda *_: "much")
    with pytest.raises(TypeError, match="act_gain"):
        adapter.advance(model, mujoco.MjData(model))


def test_a_rollout_with_callbacks_has_the_same_bits_on_threads() -> None:
    model = mujoco.MjModel.from_xml_string(MODEL)
    state = np.zeros(mujoco.mj_stateSize(model, STATE))
    mujoco.mj_getState(model, mujoco.MjData(model), state, STATE)
    states = np.tile(state, (6, 1))
    states[:, 3] += 0.01 * np.arange(6)

    def control(_: Any, data: Any) -> None:
        data.ctrl[0] = np.sin(30 * data.time) + data.qpos[2]

    mujoco.set_mjcb_control(control)
    one = adapter.rollout(model, states, None, nstep=20)
    three = adapter.rollout(model, states, None, nstep=20, threads=3)
    for expected, found in zip(one, three, strict=True):
        assert np.array_equal(found, expected)


def test_the_referee_raises_what_a_callback_raises() -> None:
    model = mujoco.MjModel.from_xml_string(MODEL)
    data = mujoco.MjData(model)
    run: dict[str, list[Any]] = {"qpos": [], "qvel": [], "next_qvel": []}
    for _ in range(4):
        run["qpos"].append(data.qpos.copy())
        run["qvel"].append(data.qvel.copy())
        mujoco.mj_step(model, data)
        run["next_qvel"].append(data.qvel.copy())

    def callback(*_: Any) -> None:
        raise ValueError("of the program")

    mujoco.set_mjcb_passive(callback)
    with pytest.raises(ValueError, match="of the program"):
        sap.certify(model, {name: np.array(values) for name, values in run.items()}, threads=3)
