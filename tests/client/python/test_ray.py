"""Servers on the nodes of a Ray cluster: started, preferred on their own node, replaced."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sap_islands as sap

from support.scenes import pushed_steps, same_bits

pytest.importorskip("ray", reason="ray is not installed; see client/python/requirements-full.txt")
import ray
import ray.cluster_utils
import sap_islands.ray

MEMORY = 80 << 20  # of a node's object store, the least that Ray accepts


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head without processors, and three nodes with one."""
    head = {"num_cpus": 0, "object_store_memory": MEMORY, "include_dashboard": False}
    cluster = ray.cluster_utils.Cluster(initialize_head=True, head_node_args=head)
    cluster.workers = [cluster.add_node(num_cpus=1, object_store_memory=MEMORY) for _ in range(3)]
    ray.init(address=cluster.address)
    yield cluster
    sap_islands.ray.stop()
    ray.shutdown()
    cluster.shutdown()


def listening(address: str) -> int:
    """The process id of the server with this address on its command line."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        words = path.read_bytes().decode(errors="replace").split("\0")
        if "--listen" in words and address in words:
            return int(path.parent.name)
    raise AssertionError(f"no server listens on {address}")


def test_servers_are_started_preferred_and_replaced(cluster: Any) -> None:
    with pytest.raises(sap.InvalidArgument, match="as many processors"):
        sap_islands.ray.start(threads=64)
    with pytest.raises(sap.Unavailable, match=r"call sap_islands\.ray\.start"):
        sap_islands.ray.connect()
    assert sap_islands.ray.start(threads=1) == 3
    assert sap_islands.ray.start(threads=1) == 3  # nothing more

    own_server_answers_its_node()
    killed_servers_and_actors_are_replaced()
    no_step_fails_when_a_node_is_removed(cluster)


def own_server_answers_its_node() -> None:
    def ids() -> tuple[set[str], str]:
        own = sap_islands.ray._addresses()[ray.get_runtime_context().get_node_id()]
        with sap_islands.ray.connect() as client, sap.connect(own) as local:
            own_id = local.info().boot_id
            while client.info().boot_id != own_id:
                pass  # it was not connected in time: another server answered
            return {client.info().boot_id for _ in range(20)}, own_id

    for node in sap_islands.ray._addresses():
        strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=False)
        task = ray.remote(num_cpus=0, scheduling_strategy=strategy)(ids)
        seen, own = ray.get(task.remote())
        assert seen == {own}


def killed_servers_and_actors_are_replaced() -> None:
    node, address = sorted(sap_islands.ray._addresses().items())[0]
    for kind in ("server", "actor"):
        with sap.connect(address, reconnect_within=60.0) as client:
            before = client.info().boot_id
            begin = time.monotonic()
            if kind == "actor":
                ray.kill(sap_islands.ray._actors()[node], no_restart=False)
            else:
                os.kill(listening(address), signal.SIGKILL)
            while client.info().boot_id == before:
                time.sleep(0.01)
            print(f"{kind} replaced within {time.monotonic() - begin:.2f} s")
        if kind == "server":
            assert time.monotonic() - begin < 5.0


def no_step_fails_when_a_node_is_removed(cluster: Any) -> None:
    problems = pushed_steps(200)
    with sap.connect("embedded:") as client, client.session() as session:
        expected = [session.step(problem) for problem in problems]
    steps = [0] * 8
    wrong: list[int] = []
    slowest = [0.0] * 8

    def run(i: int, client: sap.Client) -> None:
        with client.session() as session:
            for problem, wanted in zip(problems, expected, strict=True):
                begin = time.monotonic()
                if not same_bits(session.step(problem), wanted):
                    wrong.append(i)
                slowest[i] = max(slowest[i], time.monotonic() - begin)
                steps[i] += 1
                time.sleep(0.01)

    with sap_islands.ray.connect(reconnect_within=60.0) as client:
        environments = [threading.Thread(target=run, args=(i, client)) for i in range(8)]
        for environment in environments:
            environment.start()
        while min(steps) < 20:
            time.sleep(0.01)
        cluster.remove_node(cluster.workers.pop(), allow_graceful=False)
        for environment in environments:
            environment.join()
    print(f"slowest step {max(slowest):.3f} s")
    assert steps == [len(problems)] * 8
    assert not wrong
