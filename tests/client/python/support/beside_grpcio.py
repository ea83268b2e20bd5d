"""Runs libsap_islands_client and the package grpcio in one process, each under load.

beside_grpcio.py LIBRARY ADDRESS first|second

The last argument says which place the library has in the order in which both are loaded. Two
threads step sessions and a third opens clients and closes them, while grpcio serves itself in two
others.
Prints the number of steps and calls; fails if a velocity or an echo is not what it should be.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from concurrent import futures
from typing import Any

LIBRARY, ADDRESS, PLACE = sys.argv[1:]
SECONDS = 4.0
GRAVITY, TIME_STEP = 9.81, 0.01


class Doubles(ctypes.Structure):
    _fields_ = (("data", ctypes.POINTER(ctypes.c_double)), ("length", ctypes.c_int64))

    @classmethod
    def of(cls, *values: float) -> Doubles:
        return cls((ctypes.c_double * len(values))(*values), len(values))


class Bodies(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("mass", Doubles),
        ("inertia", Doubles),
        ("center_of_mass", Doubles),
        ("free_motion_velocity", Doubles),
    )


class Problem(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("time_step", ctypes.c_double),
        ("trees", ctypes.c_void_p),
        ("bodies", ctypes.POINTER(Bodies)),
    )


class Solution(ctypes.Structure):
    _fields_ = (("struct_size", ctypes.c_size_t), ("velocity", Doubles))


def load_library() -> Any:
    library = ctypes.CDLL(LIBRARY)
    for name in ("sap_answer_new", "sap_answer_solution"):
        getattr(library, name).restype = ctypes.c_void_p
    return library


def load_grpcio() -> Any:
    import grpc

    return grpc


if PLACE == "first":
    sap = load_library()
    grpc = load_grpcio()
else:
    grpc = load_grpcio()
    sap = load_library()


def opened() -> tuple[Any, Any, Any]:
    """A client with a session, and an answer."""
    client, session = ctypes.c_void_p(), ctypes.c_void_p()
    answer = ctypes.c_void_p(sap.sap_answer_new())
    address = ADDRESS.encode()
    assert sap.sap_connect(address, None, None, ctypes.byref(client), answer) == 0
    assert sap.sap_session_open(client, None, None, ctypes.byref(session), answer) == 0
    return client, session, answer


def free(client: Any, session: Any, answer: Any) -> None:
    sap.sap_session_free(session)
    sap.sap_client_free(client)
    sap.sap_answer_free(answer)


def stepped(session: Any, answer: Any, speed: float) -> bool:
    """Whether a body in free fall keeps the velocity that it has without contacts."""
    bodies = Bodies(
        ctypes.sizeof(Bodies),
        Doubles.of(2.0),
        Doubles.of(0.1, 0.1, 0.1, 0.0, 0.0, 0.0),
        Doubles.of(0.0, 0.0, 10.0),
        Doubles.of(0.0, 0.0, -speed, 0.0, 0.0, 0.0),
    )
    problem = Problem(ctypes.sizeof(Problem), TIME_STEP, None, ctypes.pointer(bodies))
    assert sap.sap_session_step(session, ctypes.byref(problem), None, None, answer) == 0
    solution = Solution.from_address(sap.sap_answer_solution(answer))
    return bool(solution.velocity.data[2] == -speed)


def step_sessions(stop: threading.Event) -> int:
    client, session, answer = opened()
    count = 0
    while not stop.is_set():
        count += 1
        assert stepped(session, answer, GRAVITY * TIME_STEP * count)
    free(client, session, answer)
    return count


def open_and_close(stop: threading.Event) -> int:
    count = 0
    while not stop.is_set():
        client, session, answer = opened()
        assert stepped(session, answer, 1.0)
        free(client, session, answer)
        count += 1
    return count


def serve_grpcio() -> tuple[Any, int]:
    echo = grpc.unary_unary_rpc_method_handler(lambda request, context: request)
    server = grpc.server(futures.ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("test.Echo", {"Echo": echo}),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, port


def call_grpcio(port: int, stop: threading.Event) -> int:
    count = 0
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        echo = channel.unary_unary("/test.Echo/Echo")
        while not stop.is_set():
            sent = os.urandom(1000)
            assert echo(sent) == sent
            count += 1
    return count


def main() -> None:
    server, port = serve_grpcio()
    stop = threading.Event()
    with futures.ThreadPoolExecutor(5) as pool:
        steps = [pool.submit(step_sessions, stop) for _ in range(2)]
        clients = pool.submit(open_and_close, stop)
        calls = [pool.submit(call_grpcio, port, stop) for _ in range(2)]
        futures.wait([*steps, clients, *calls], SECONDS, futures.FIRST_EXCEPTION)
        stop.set()
        counts = [sum(task.result() for task in tasks) for tasks in (steps, [clients], calls)]
    server.stop(None)
    print(*counts)


if __name__ == "__main__":
    main()
