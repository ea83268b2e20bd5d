"""Rollouts of unchanged programs at servers, for `sap-islands run --server`.

`startup/sitecustomize.py` gives it each call of `mujoco._rollout.Rollout.rollout`. A call that
servers cannot or should not take is the program's own, by MuJoCo, and so is one that a server has
not answered: the program sees no error that it would not have had.
"""

from __future__ import annotations

import functools
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import mujoco

from sap_islands._library.native_client import NativeClient
from sap_islands.client import Client, connect
from sap_islands.errors import SapError, StatusCode
from sap_islands.mujoco.callbacks import has_callbacks
from sap_islands.mujoco.server_rollouts import MujocoRollout, can_be_served, roll_out_as_mujoco
from sap_islands.replacement import ROLLOUTS_SERVED

_FIRST_GUESS_S = 10e-6  # of a step of which none was timed
_LEAST_S = 1e-3  # time of a rollout that is worth a call
_CONNECT_S = 5.0
_REPEATED_S = 2.0  # for which lost calls are repeated
_PAUSE_S = 5.0  # after servers were lost
# Errors that every further call would have, too.
_FOR_GOOD = (
    StatusCode.UNIMPLEMENTED,
    StatusCode.PERMISSION_DENIED,
    StatusCode.UNAUTHENTICATED,
    StatusCode.FAILED_PRECONDITION,
)


class Work(NamedTuple):
    """Size of a call.

    Attributes:
        models: Of all its simulations.
        steps: Of all of them together.
        threads: Of the program, that would take them.
    """

    models: Sequence[mujoco.MjModel]
    steps: int
    threads: int


class ServedRollouts:
    """The rollouts of this process. Threads may share it."""

    def __init__(self, address: str, report: str | None) -> None:
        self._address = address
        self._report = report
        self._pid = 0  # of the process with the client
        self._lock = threading.Lock()
        os.register_at_fork(after_in_child=lambda: setattr(self, "_lock", threading.Lock()))
        self._client: Client | None = None
        self._round_trip_s = 0.0
        self._paused_until = 0.0
        self._refused = ""  # why no call is served any more
        self._step_s: weakref.WeakKeyDictionary[mujoco.MjModel, float] = weakref.WeakKeyDictionary()

    def rollout(self, own: Callable[..., Any], threads: int, arguments: tuple[Any, ...]) -> Any:
        """Takes a call of `mujoco.rollout` to servers, or to the program's own function."""
        try:
            call = MujocoRollout(*arguments)
        except TypeError:  # of another version of MuJoCo
            return own(*arguments)
        return self.take(
            Work(call.models, call.steps, threads),
            functools.partial(_reason_of, call),
            functools.partial(roll_out_as_mujoco, call=call),
            functools.partial(own, *arguments),
        )

    def take(
        self,
        work: Work,
        reason_of: Callable[[], str],
        serve: Callable[[NativeClient], bool],
        own: Callable[[], Any],
    ) -> Any:
        """Takes a call to servers, or to the program's own function.

        Args:
            work: Its size.
            reason_of: Why servers do not take it; empty: they do.
            serve: Makes the call at servers. Returns whether it has done what `own` does.
            own: The program's function.

        Returns:
            The value of `own`; None: servers have taken the call.
        """
        try:
            reason = self._reason_to_stay(work) or reason_of() or self._serve(serve)
        except Exception as error:  # the program must not see it
            reason = type(error).__name__
        self._count(reason or ROLLOUTS_SERVED, work.steps)
        if not reason:
            return None
        begun = time.perf_counter()
        result = own()
        if work.steps:
            took = (time.perf_counter() - begun) * max(1, min(work.threads, len(work.models)))
            self._step_s[work.models[0]] = took / work.steps
        return result

    def _reason_to_stay(self, work: Work) -> str:
        """Why MuJoCo takes a call, whatever it is; empty: servers may."""
        if self._refused:
            return self._refused
        if self._client is not None and os.getpid() != self._pid:
            return "a process forked from one that has called servers"
        if has_callbacks():
            return "callbacks"
        if not work.steps:
            return "no step"
        if not can_be_served(work.models, None):
            return "a model with plugins or sleep"
        step_s = self._step_s.get(work.models[0], _FIRST_GUESS_S)
        predicted_s = step_s * work.steps / max(1, work.threads)
        if predicted_s < max(_LEAST_S, 2 * self._round_trip_s):
            return "too small to pay"
        return "servers were lost" if time.monotonic() < self._paused_until else ""

    def _serve(self, serve: Callable[[NativeClient], bool]) -> str:
        """Makes a call at servers. Returns why that has failed; empty: it has not."""
        try:
            is_done = serve(self._connected()._solver.client)
        except SapError as error:
            with self._lock:
                reason = f"servers: {error.reason or error.code.name}"
                if error.code in _FOR_GOOD:
                    self._refused = reason
                elif error.code in (StatusCode.UNAVAILABLE, StatusCode.DEADLINE_EXCEEDED):
                    self._paused_until = time.monotonic() + _PAUSE_S
            return reason
        return "" if is_done else "a simulation with an error or warning"

    def _connected(self) -> Client:
        with self._lock:
            if self._client is None:
                client = connect(
                    self._address, token=os.environ.get("SAP_TOKEN"), reconnect_within=_REPEATED_S
                )
                client.info(timeout=_CONNECT_S)
                self._round_trip_s = min(_round_trip_s(client) for _ in range(3))
                self._client, self._pid = client, os.getpid()
            return self._client

    def _count(self, outcome: str, steps: int) -> None:
        """Appends a line to the file of all processes."""
        if self._report is None:
            return
        try:
            descriptor = os.open(self._report, os.O_WRONLY | os.O_APPEND)
            os.write(descriptor, f"{outcome}\t{steps}\n".encode())
            os.close(descriptor)
        except OSError:
            self._report = None


def _reason_of(call: MujocoRollout) -> str:
    """Why servers do not take a call of `mujoco.rollout`."""
    if call.control_spec & ~int(mujoco.mjtState.mjSTATE_USER):
        return "controls of another kind"
    return "" if call.has_common_arrays() else "arrays of another kind"


def _round_trip_s(client: Client) -> float:
    begun = time.perf_counter()
    client.info(timeout=_CONNECT_S)
    return time.perf_counter() - begun


@functools.cache
def of_process() -> ServedRollouts:
    """The rollouts of the program, by the variables that `sap-islands run` sets."""
    return ServedRollouts(os.environ["SAP_RUN_SERVER"], os.environ.get("SAP_RUN_ROLLOUTS"))
