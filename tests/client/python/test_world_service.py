"""Worlds on a real server, by stock grpcio: the bits of local rollouts, and what bad input gets."""

from __future__ import annotations

import os
import signal
import struct
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import mujoco
import numpy as np
import pytest
import sap_islands as sap
import sap_islands.mujoco

from support.schema import world_service_pb2 as pb
from support.server_process import ServerProcess
from support.worlds import (
    ARM,
    CLUTTER,
    MODELS,
    Worlds,
    advance_request,
    binary,
    children_of,
    detail_of,
    library,
    mjcf,
    reason_of,
    rows,
    states_of,
)

LAWS = {
    "sap": pb.WORLD_LAW_SAP,
    "mujoco": pb.WORLD_LAW_MUJOCO,
    "coulomb": pb.WORLD_LAW_COULOMB,
    "run": pb.WORLD_LAW_RUN,
}
# Seconds within which something ends on a busy machine.
LONG = 60.0


def serve(*flags: str) -> ServerProcess:
    """A server that steps worlds."""
    return ServerProcess("127.0.0.1:0", "--mujoco-library", str(library()), *flags)


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    """A server of two threads, which gives models little time and memory."""
    with serve(
        "--threads=2", "--max-world-memory-mib=1024", "--max-model-load-s=2", "--max-step-s=0.5"
    ) as process:
        yield process


@pytest.fixture
def worlds(server: ServerProcess) -> Iterator[Worlds]:
    """Calls of it."""
    with Worlds(server.address) as calls:
        yield calls


def local(model: Any, states: Any, controls: Any, steps: int, law: Any) -> Any:
    """The same worlds stepped here."""
    warned = np.empty(len(states), np.int64)
    return sap.mujoco.rollout(
        model, states, controls, nstep=steps, law=law, warned_in=warned, on_unsolved="ignore"
    )


def controls_of(model: Any, worlds: int, steps: int) -> Any:
    rng = np.random.default_rng(1)
    return rng.uniform(-0.5, 0.5, (worlds, steps, model.nu)) if model.nu else None


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", MODELS)
def test_worlds_have_the_bits_of_a_local_rollout(worlds: Worlds, name: str, law: str) -> None:
    model = mujoco.MjModel.from_xml_string(MODELS[name])
    states, steps = states_of(model, 5), 30
    controls = controls_of(model, 5, steps)
    expected_states, expected_sensors = local(model, states, controls, steps, law)
    put = worlds.put_model(model)
    assert put.sizes.nq == model.nq
    assert put.sizes.nsensordata == model.nsensordata
    answer = worlds.advance(advance_request(put.model_id, states, controls, steps, law=LAWS[law]))
    np.testing.assert_array_equal(rows(answer.states, 5, steps), expected_states)
    np.testing.assert_array_equal(rows(answer.sensors, 5, steps), expected_sensors)
    assert all(outcome.end != pb.WORLD_END_FAILURE for outcome in answer.outcomes)


def test_a_model_of_files_is_that_of_the_compiler(worlds: Worlds) -> None:
    xml = CLUTTER.replace("<worldbody>", '<include file="option.xml"/><worldbody>')
    include = b'<mujoco><option timestep="0.004"/></mujoco>'
    put = worlds.put(mjcf(xml, {"option.xml": include}))
    model = mujoco.MjModel.from_xml_string(xml, {"option.xml": include})
    states = states_of(model, 2)
    answer = worlds.advance(advance_request(put.model_id, states, None, 9))
    np.testing.assert_array_equal(
        rows(answer.states, 2, 9), local(model, states, None, 9, "sap")[0]
    )


def test_final_states_go_on_with_the_bits_of_one_call(worlds: Worlds) -> None:
    model = mujoco.MjModel.from_xml_string(CLUTTER)
    put = worlds.put_model(model)
    states = states_of(model, 3)
    whole = worlds.advance(advance_request(put.model_id, states, None, 40))
    first = worlds.advance(
        advance_request(put.model_id, states, None, 15, answers_final_states=True)
    )
    second = worlds.advance(
        advance_request(
            put.model_id,
            np.array(first.final_states).reshape(3, -1),
            None,
            25,
            state_kind=pb.STATE_KIND_INTEGRATION,
            answered_kind=pb.STATE_KIND_FULL_PHYSICS,
        )
    )
    np.testing.assert_array_equal(
        rows(whole.states, 3, 40),
        np.concatenate([rows(first.states, 3, 15), rows(second.states, 3, 25)], axis=1),
    )


@pytest.mark.parametrize("threads", [1, 2])
def test_certificates_are_those_of_a_local_rollout(threads: int) -> None:
    model = mujoco.MjModel.from_xml_string(CLUTTER)
    states, steps = states_of(model, 9), 60
    _, _, expected = sap.mujoco.rollout(model, states, None, nstep=steps, certificates=True)
    with serve(f"--threads={threads}") as server, Worlds(server.address) as worlds:
        put = worlds.put_model(model)
        answer = worlds.advance(
            advance_request(put.model_id, states, None, steps, answers_certificates=True)
        )
    for name in ("islands", "unsolved", "iterations", "bound"):
        values = np.array(getattr(answer.certificates, name)).reshape(9, steps)
        np.testing.assert_array_equal(values, expected[name])
    assert expected["islands"].any()


@pytest.mark.parametrize("every", [1, 7])
def test_worlds_at_rest_end_as_they_do_locally(worlds: Worlds, every: int) -> None:
    model = mujoco.MjModel.from_xml_string(CLUTTER)
    states, steps = states_of(model, 4), 700
    until = sap.mujoco.AtRest(speed=0.05, seconds=0.04)
    expected, _ = sap.mujoco.rollout(model, states, None, nstep=steps, until=until)
    request = advance_request(worlds.put_model(model).model_id, states, None, steps, every=every)
    request.until.speed, request.until.duration = 0.05, 0.04
    answer = worlds.advance(request)
    answered = [*range(every - 1, steps, every)]
    if answered[-1] != steps - 1:
        answered.append(steps - 1)
    np.testing.assert_array_equal(rows(answer.states, 4, len(answered)), expected[:, answered])
    ends = [outcome.end for outcome in answer.outcomes]
    assert pb.WORLD_END_REST in ends
    for outcome in answer.outcomes:
        assert (outcome.end == pb.WORLD_END_REST) == (outcome.steps < steps)


def test_a_diverging_world_is_held_and_others_go_on(worlds: Worlds) -> None:
    model = mujoco.MjModel.from_xml_string(ARM)
    put = worlds.put_model(model)
    states = states_of(model, 3)
    states[1, 1] = np.nan
    controls = controls_of(model, 3, 8)
    expected, _ = local(model, states, controls, 8, "run")
    answer = worlds.advance(
        advance_request(put.model_id, states, controls, 8, law=pb.WORLD_LAW_RUN)
    )
    np.testing.assert_array_equal(rows(answer.states, 3, 8), expected)
    assert [outcome.end for outcome in answer.outcomes] == [
        pb.WORLD_END_STEPS,
        pb.WORLD_END_WARNING,
        pb.WORLD_END_STEPS,
    ]


# What bad input gets.

HFIELD = """<mujoco><asset><hfield name="h" nrow="40000" ncol="40000" size="1 1 1 1"/></asset>
<worldbody><geom type="hfield" hfield="h"/></worldbody></mujoco>"""
NUSER = '<mujoco><size nuser_body="500000000"/><worldbody><body/></worldbody></mujoco>'
REPLICATE = (
    "<mujoco><worldbody>"
    + '<replicate count="100">' * 4
    + '<geom size="1"/>'
    + "</replicate>" * 4
    + "</worldbody></mujoco>"
)


def spheres(count: int) -> str:
    """Spheres in one place, which touch each other all."""
    body = '<body><freejoint/><geom size=".1"/></body>'
    return f"<mujoco><worldbody>{body * count}</worldbody></mujoco>"


def refusal(call: Callable[[], Any]) -> grpc.RpcError:
    """The error of a call that is refused."""
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value


def text_of(error: grpc.RpcError) -> str:
    """The message of the status."""
    return str(error.details())


def expect_alive(worlds: Worlds) -> None:
    """The server serves the next call with the same bits."""
    model = mujoco.MjModel.from_xml_string(ARM)
    states = states_of(model, 2)
    put = worlds.put_model(model)
    answer = worlds.advance(advance_request(put.model_id, states, None, 5))
    np.testing.assert_array_equal(
        rows(answer.states, 2, 5), local(model, states, None, 5, "sap")[0]
    )


@pytest.mark.parametrize(
    ("xml", "reasons"),
    [
        (HFIELD, {"MODEL_MEMORY"}),
        (NUSER, {"MODEL_MEMORY", "MODEL_TIME"}),
        (REPLICATE, {"MODEL_MEMORY", "MODEL_TIME"}),
    ],
    ids=["hfield", "nuser_body", "replicate"],
)
def test_a_model_that_takes_too_much_ends_its_worker_alone(
    worlds: Worlds, xml: str, reasons: set[str]
) -> None:
    error = refusal(lambda: worlds.put_xml(xml))
    assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert reason_of(error) in reasons
    expect_alive(worlds)


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (mjcf('<mujoco><include file="/etc/passwd"/></mujoco>'), "passwd"),
        (mjcf('<mujoco><include file="absent.xml"/></mujoco>'), "absent.xml"),
        (
            mjcf(
                '<mujoco><asset><mesh file="/usr/share/some.obj"/></asset>'
                '<worldbody><geom type="mesh" mesh="some"/></worldbody></mujoco>'
            ),
            "some.obj",
        ),
        (
            mjcf(
                '<mujoco><extension><plugin plugin="mujoco.pid"/></extension><worldbody/></mujoco>'
            ),
            "mujoco.pid",
        ),
        (mjcf('<mujoco><option><flag sleep="enable"/></option><worldbody/></mujoco>'), "sleep"),
        (mjcf("<mujoco><worldbody>"), "XML"),
        (mjcf(b"\xff\xfe\x00"), ""),
        (binary(b"no model"), ""),
        (binary(b"\x00" * 4096), ""),
    ],
    ids=["passwd", "absent", "mesh", "plugin", "sleep", "cut-off", "bytes", "mjb", "zeros"],
)
def test_a_model_that_is_refused_is_refused_by_name(
    worlds: Worlds, request_: Any, words: str
) -> None:
    error = refusal(lambda: worlds.put(request_))
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT, text_of(error)
    assert reason_of(error) == "MODEL_REFUSED"
    assert words in text_of(error)
    expect_alive(worlds)


def test_another_version_is_refused_with_both(worlds: Worlds) -> None:
    request = mjcf(ARM)
    request.mujoco_version = 3_005_000
    error = refusal(lambda: worlds.put(request))
    assert error.code() == grpc.StatusCode.FAILED_PRECONDITION
    assert reason_of(error) == "MUJOCO_VERSION"
    assert "3.5.0" in text_of(error)
    assert mujoco.__version__ in text_of(error)


def test_a_step_that_takes_too_long_is_named(worlds: Worlds) -> None:
    model = mujoco.MjModel.from_xml_string(spheres(400))
    put = worlds.put_model(model)
    request = advance_request(put.model_id, states_of(model, 1), None, 2)
    error = refusal(lambda: worlds.advance(request))
    assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert reason_of(error) in {"WORLD_STEP_TIME", "WORLD_LOST"}
    assert detail_of(error).metadata == {"world": "0", "step": "0"}
    assert "world 0" in text_of(error)
    error = refusal(lambda: worlds.advance(request))
    assert reason_of(error) == "MODEL"
    expect_alive(worlds)


def step_twice(worlds: Worlds, content: bytes) -> None:
    """Steps a binary model, whose states are all zero."""
    put = worlds.put(binary(content))
    states = np.zeros((1, put.sizes.full_physics))
    worlds.advance(advance_request(put.model_id, states, None, 2), timeout=LONG)


def code_of(call: Callable[[], None]) -> grpc.StatusCode | None:
    """The code with which a call fails; None: it does not."""
    try:
        call()
    except grpc.RpcError as error:
        return error.code()
    return None


def test_changed_binary_models_end_no_server(worlds: Worlds) -> None:
    model = mujoco.MjModel.from_xml_string(CLUTTER)
    buffer = np.empty(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, buffer)
    rng = np.random.default_rng(7)
    for _ in range(25):
        changed = bytearray(buffer.tobytes())
        for _ in range(rng.integers(1, 10)):
            at = int(rng.integers(0, len(changed) // 4)) * 4
            struct.pack_into("<I", changed, at, int(rng.integers(0, 2**32)))
        assert code_of(partial(step_twice, worlds, bytes(changed))) in {
            None,
            grpc.StatusCode.INVALID_ARGUMENT,
            grpc.StatusCode.RESOURCE_EXHAUSTED,
        }
    expect_alive(worlds)


def test_an_answer_beyond_the_limit_is_refused_with_its_reason(worlds: Worlds) -> None:
    model = mujoco.MjModel.from_xml_string(CLUTTER)
    put = worlds.put_model(model)
    error = refusal(
        lambda: worlds.advance(
            advance_request(put.model_id, states_of(model, 100), None, 1_000_000)
        )
    )
    assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert reason_of(error) == "ANSWER_BYTES"


def test_wrong_shapes_are_refused_by_field(worlds: Worlds) -> None:
    model = mujoco.MjModel.from_xml_string(ARM)
    put = worlds.put_model(model)
    request = advance_request(put.model_id, states_of(model, 2), None, 3)
    del request.states[-1]
    error = refusal(lambda: worlds.advance(request))
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert text_of(error).startswith("states has ")


# Kill, cancel, neighbours.


def test_a_killed_worker_costs_no_call_and_no_bits() -> None:
    model = mujoco.MjModel.from_xml_string(CLUTTER)
    states, steps = states_of(model, 8), 200
    expected, _ = local(model, states, None, steps, "sap")
    with serve("--threads=2") as server, Worlds(server.address) as worlds:
        request = advance_request(worlds.put_model(model).model_id, states, None, steps)
        done = threading.Event()

        def kill() -> None:
            for _ in range(3):
                for pid in children_of(server.pid)[:1]:
                    os.kill(pid, signal.SIGKILL)
                if done.wait(0.2):
                    return

        killer = threading.Thread(target=kill)
        killer.start()
        answers = [worlds.advance(request) for _ in range(3)]
        done.set()
        killer.join()
    for answer in answers:
        np.testing.assert_array_equal(rows(answer.states, 8, steps), expected)


def processor_seconds(pids: list[int]) -> float:
    """Processor time of processes that may have ended."""
    ticks = 0
    for pid in pids:
        try:
            words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(words[11]) + int(words[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def expect_idle(pid: int) -> None:
    """The workers of the server come to rest."""
    until = time.monotonic() + LONG
    while time.monotonic() < until:
        before = processor_seconds(children_of(pid))
        time.sleep(0.5)
        if processor_seconds(children_of(pid)) - before < 0.1:
            return
    raise AssertionError("workers go on working")


def endless(worlds: Worlds, count: int = 64) -> Any:
    """A request of hours."""
    model = mujoco.MjModel.from_xml_string(spheres(60))
    request = advance_request(worlds.put_model(model).model_id, states_of(model, count), None, 9000)
    request.answers_states = request.answers_sensors = False
    return request


def test_the_work_of_a_cancelled_call_ends(server: ServerProcess, worlds: Worlds) -> None:
    call = worlds.start(endless(worlds))
    time.sleep(0.5)
    call.cancel()
    expect_idle(server.pid)
    error = refusal(lambda: worlds.advance(endless(worlds), timeout=0.5))
    assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    expect_idle(server.pid)
    expect_alive(worlds)


def test_a_neighbour_is_served_beside_an_endless_call(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(
        "rude rude-rude-rude-rude\nkind kind-kind-kind-kind\nnone none-none-none-none worlds=no\n"
    )
    with (
        serve("--threads=1", f"--token-file={tokens}") as server,
        Worlds(server.address, "rude-rude-rude-rude") as rude,
        Worlds(server.address, "kind-kind-kind-kind") as kind,
        Worlds(server.address, "none-none-none-none") as none,
    ):
        calls = [rude.start(endless(rude))]
        for _ in range(3):
            expect_alive(kind)
        assert not any(call.done() for call in calls)
        error = refusal(lambda: kind.advance(endless(rude), timeout=LONG))
        assert error.code() == grpc.StatusCode.NOT_FOUND
        error = refusal(lambda: none.put_xml(ARM))
        assert error.code() == grpc.StatusCode.PERMISSION_DENIED
        for call in calls:
            call.cancel()
        expect_idle(server.pid)


def test_a_neighbour_is_served_beside_a_model_that_loads_for_long(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("rude rude-rude-rude-rude\nkind kind-kind-kind-kind\n")
    flags = ("--threads=1", "--max-model-load-s=600", "--max-world-memory-mib=8192")
    with (
        serve(*flags, f"--token-file={tokens}") as server,
        Worlds(server.address, "rude-rude-rude-rude") as rude,
        Worlds(server.address, "kind-kind-kind-kind") as kind,
    ):
        call = rude.start_put(mjcf(REPLICATE))
        for _ in range(3):
            expect_alive(kind)
        assert not call.done()
        call.cancel()
        expect_idle(server.pid)


def test_a_server_without_the_flag_names_it() -> None:
    with ServerProcess("127.0.0.1:0") as server, Worlds(server.address) as worlds:
        error = refusal(lambda: worlds.put_xml(ARM))
        assert error.code() == grpc.StatusCode.UNIMPLEMENTED
        assert "--mujoco-library" in text_of(error)
        assert not children_of(server.pid)


def test_workers_end_with_their_server() -> None:
    with serve("--threads=1") as server, Worlds(server.address) as worlds:
        expect_alive(worlds)
        workers = children_of(server.pid)
        assert workers
        server.kill()
        until = time.monotonic() + LONG
        while any(Path(f"/proc/{pid}").exists() for pid in workers):
            assert time.monotonic() < until
            time.sleep(0.01)
