"""Rates of rollouts at a server against the best loop in this process, near and far.

    SAP_LIBRARY=... SAP_SERVER=... python tests/bench/world_rates.py [OPTION...] [SCENE...]

starts a server with `--mujoco-library` and prints, for N environments and K steps a call, the time
of a call in this process, its rate, and which share of that rate calls of the server have: over
loopback, and over a relay that adds 1 ms to each round trip. The time here is that of the best
loop: `rollout`, or states that are kept, set and advanced. Calls are in turn, and each time is the
least of some. Both sides have as many threads. With --two it compares two servers with one.
"""

from __future__ import annotations

import argparse
import multiprocessing
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import mujoco
import numpy as np
import sap_islands as sap
import sap_islands.mujoco
from sap_islands.binaries import find_server
from sap_islands.scenes import load_scene

from rollouts import states

ONE_WAY_S = 0.5e-3
COUNTS, STEPS = (1, 16, 64), (1, 10, 100)
BUDGET_S = 0.7  # for each side of a row
STATE = mujoco.mjtState.mjSTATE_FULLPHYSICS
ARM = """<mujoco><option timestep="0.005"/><default><geom type="capsule" size=".04"/></default>
<worldbody><geom type="plane" size="2 2 .1"/>
<body pos="0 0 .5"><joint name="a" axis="0 1 0"/><geom fromto="0 0 0 .4 0 0"/>
<body pos=".4 0 0"><joint name="b" axis="0 1 0"/><geom fromto="0 0 0 .3 0 0"/></body></body>
</worldbody>
<actuator><motor joint="a" gear="2"/><position joint="b" kp="5"/></actuator></mujoco>"""
SCENES = {
    "arm, law sap": (lambda: mujoco.MjModel.from_xml_string(ARM), "sap"),
    "arm, law run": (lambda: mujoco.MjModel.from_xml_string(ARM), "run"),
    "clutter of 10, law sap": (lambda: load_scene("clutter", 10), "sap"),
    "clutter of 40, law sap": (lambda: load_scene("clutter", 40), "sap"),
}


def forward(source: socket.socket, sink: socket.socket) -> None:
    """Passes on what arrives, each part after the delay."""
    parts: list[tuple[float, bytes]] = []
    changed = threading.Condition()

    def send() -> None:
        while True:
            with changed:
                changed.wait_for(lambda: parts)
                due, data = parts.pop(0)
            time.sleep(max(0.0, due - time.perf_counter()))
            if not data:
                return
            sink.sendall(data)

    threading.Thread(target=send, daemon=True).start()
    while True:
        try:
            data = source.recv(1 << 20)
        except OSError:
            data = b""
        with changed:
            parts.append((time.perf_counter() + ONE_WAY_S, data))
            changed.notify()
        if not data:
            return


def relay(listener: socket.socket, port: int) -> None:
    """Serves connections to a port of this machine, as if it were far away."""
    while True:
        near, _ = listener.accept()
        far = socket.create_connection(("127.0.0.1", port))
        for one, other in ((near, far), (far, near)):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=forward, args=(one, other), daemon=True).start()


@contextmanager
def server(threads: int) -> Iterator[tuple[str, str]]:
    """A server of worlds: its address, and that of a relay in front of it."""
    (library,) = Path(mujoco.__file__).parent.glob("libmujoco.so*")
    command = [find_server(), "--listen", "127.0.0.1:0", "--threads", str(threads)]
    process = subprocess.Popen(
        [*command, "--mujoco-library", str(library)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    address = process.stdout.readline().split()[-1]
    listener = socket.create_server(("127.0.0.1", 0))
    far = f"127.0.0.1:{listener.getsockname()[1]}"
    between = multiprocessing.get_context("fork").Process(
        target=relay, args=(listener, int(address.rpartition(":")[2])), daemon=True
    )
    between.start()
    try:
        yield address, far
    finally:
        between.kill()
        process.kill()
        process.wait()


def least_times(sides: list, budget_s: float) -> list[float]:
    """The least time of each side [s]; all run in turn."""
    least = [float("inf")] * len(sides)
    until = time.perf_counter() + budget_s * len(sides)
    rounds = 0
    while rounds < 3 or time.perf_counter() < until:
        for i, run in enumerate(sides):
            start = time.perf_counter()
            run()
            least[i] = min(least[i], time.perf_counter() - start)
        rounds += 1
    return least


def kept(model: mujoco.MjModel, initial: np.ndarray, steps: int, law: str, threads: int):
    """A rollout by states that are made once."""
    data = [mujoco.MjData(model) for _ in initial]

    def run() -> None:
        for each, state in zip(data, initial, strict=True):
            mujoco.mj_resetData(model, each)
            mujoco.mj_setState(model, each, state, STATE)
        sap.mujoco.advance_batch(
            model, data, steps=steps, law=law, threads=threads, on_unsolved="ignore"
        )

    return run


def row(
    model: mujoco.MjModel,
    law: str,
    count: int,
    steps: int,
    clients,
    threads: int,
    budget_s: float,
) -> str:
    """Time and rate here, and the shares of the clients."""
    initial = states(model, count)
    settings = {"nstep": steps, "law": law, "on_unsolved": "ignore"}

    def rolled_out(*client, **more):
        return lambda: sap.mujoco.rollout(model, initial, None, *client, **settings, **more)

    here = [rolled_out(threads=threads), kept(model, initial, steps, law, threads)]
    times = least_times([*here, *(rolled_out(client) for client in clients)], budget_s)
    best = min(times[: len(here)])
    shares = " | ".join(f"{best / each:.2f}" for each in times[len(here) :])
    return f"{count} | {steps} | {1e3 * best:.3g} | {count * steps / best:.3g} | {shares}"


def compare_two(scenes: list[str], threads: int) -> None:
    """Prints the times of one server and of two, for 64 environments."""
    print("| scene | K | one server [ms] | two servers [ms] | ratio |")
    print("|---|---:|---:|---:|---:|")
    with server(threads) as (first, _), server(threads) as (second, _):
        with sap.connect(first) as one, sap.connect(f"{first},{second}") as two:
            for scene in scenes:
                make, law = SCENES[scene]
                model = make()
                initial = states(model, 64)
                for steps in (20, 100):

                    def at(client, steps=steps, model=model, initial=initial, law=law):
                        return lambda: sap.mujoco.rollout(
                            model, initial, None, client, nstep=steps, law=law, on_unsolved="ignore"
                        )

                    times = least_times([at(one), at(two)], BUDGET_S)
                    shown = " | ".join(f"{1e3 * each:.3g}" for each in times)
                    ratio = f"{times[0] / times[1]:.2f}"
                    print(f"| {scene} | {steps} | {shown} | {ratio} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--two", action="store_true")
    parser.add_argument("--counts", type=int, nargs="+", default=COUNTS, metavar="N")
    parser.add_argument("--steps", type=int, nargs="+", default=STEPS, metavar="K")
    parser.add_argument("--budget", type=float, default=BUDGET_S, help="of each side of a row [s]")
    parser.add_argument("scenes", nargs="*", default=list(SCENES), metavar="SCENE")
    arguments = parser.parse_args()
    if arguments.two:
        return compare_two(arguments.scenes, arguments.threads)
    print("| scene | N | K | here [ms] | steps/s here | loopback | 1 ms |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    with server(arguments.threads) as (near, far), sap.connect(near) as a, sap.connect(far) as b:
        for scene in arguments.scenes:
            make, law = SCENES[scene]
            model = make()
            for count in arguments.counts:
                for steps in arguments.steps:
                    line = row(
                        model, law, count, steps, (a, b), arguments.threads, arguments.budget
                    )
                    print(f"| {scene} | {line} |", flush=True)


if __name__ == "__main__":
    main()
