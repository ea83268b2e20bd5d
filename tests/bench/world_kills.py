"""Rollouts while three servers are killed in turn: how many fail, or have other bits.

    SAP_LIBRARY=... SAP_SERVER=... python tests/bench/world_kills.py [--calls N]
"""

from __future__ import annotations

import argparse
import subprocess
import threading
import time
from pathlib import Path

import mujoco
import numpy as np
import sap_islands as sap
import sap_islands.mujoco
from sap_islands.binaries import find_server
from sap_islands.scenes import load_scene
from world_rates import states

WORLDS, STEPS = 8, 20
PAUSE_S = 0.2  # between a server that is back and the end of the next


def start(address: str) -> tuple[subprocess.Popen, str]:
    (library,) = Path(mujoco.__file__).parent.glob("libmujoco.so*")
    command = [find_server(), "--listen", address, "--threads", "1"]
    process = subprocess.Popen(
        [*command, "--mujoco-library", str(library)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    return process, process.stdout.readline().split()[-1]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=2000)
    calls = parser.parse_args().calls
    servers = [start("127.0.0.1:0") for _ in range(3)]
    model = load_scene("clutter", 10)
    initial = states(model, WORLDS)

    def roll_out(*client):
        return sap.mujoco.rollout(model, initial, None, *client, nstep=STEPS)

    expected, done, kills = roll_out(), threading.Event(), 0

    def kill_in_turn() -> None:
        nonlocal kills
        while not done.wait(PAUSE_S):
            process, address = servers[kills % 3]
            process.kill()
            process.wait()
            servers[kills % 3] = start(address)
            kills += 1

    killer = threading.Thread(target=kill_in_turn)
    killer.start()
    failed = different = 0
    begun = time.perf_counter()
    with sap.connect(",".join(address for _, address in servers)) as client:
        for _ in range(calls):
            try:
                found = roll_out(client)
            except sap.SapError as error:
                print(error)
                failed += 1
                continue
            different += not all(map(np.array_equal, found, expected))
    seconds = time.perf_counter() - begun
    done.set()
    killer.join()
    for process, _ in servers:
        process.kill()
    print(f"{calls} calls, {kills} kills, {failed} failed, {different} different, {seconds:.0f} s")


if __name__ == "__main__":
    main()
