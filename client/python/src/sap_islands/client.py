"""Synchronous client: `connect`, single solves, batches and sessions.

A problem has the same solution, bit for bit, over TCP, a Unix socket or an embedded server of the
same version and instruction set.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from numpy.typing import ArrayLike

from sap_islands._library.connect import open_client
from sap_islands._library.native_client import number_of_servers
from sap_islands._library.native_session import SessionSettings
from sap_islands._library.native_solver import NativeSolver
from sap_islands._process.embedded_server import EmbeddedServer
from sap_islands.derivatives import Cotangent, Derivatives, DifferentiateRequest
from sap_islands.errors import SapError
from sap_islands.options import Options
from sap_islands.problem import Problem
from sap_islands.server_info import ServerInfo
from sap_islands.session import Session
from sap_islands.solution import Solution
from sap_islands.tls import Tls


def connect(
    address: str,
    *,
    tls: Tls | bool = False,
    token: str | None = None,
    reconnect_within: float = 5.0,
    allow_mixed_servers: bool = False,
    server_arguments: Sequence[str] = (),
    threads: int | None = None,
    scene_connections: int = 1,
) -> Client:
    """Makes a client of the servers at an address. Nothing is sent until the first call.

    Args:
        address: "HOST:PORT" or "unix:PATH" of a server; several as "A:1,B:2,..." or
            "dns:///NAME:PORT", over which calls and sessions take turns; "xds:///NAME" where a
            control plane says which; "embedded:" for the solver in this process; or
            "embedded:process" to start a server that the client owns, for isolation. Host names in
            a list are looked up once, here; the name of "dns:" again when a connection breaks.
        tls: True or certificates to encrypt the connection; False: plain text.
        token: Bearer token sent with every call; needs TLS, loopback addresses or a Unix socket.
        reconnect_within: How long lost calls are repeated and lost sessions look for a server [s];
            0: never. All calls are idempotent.
        allow_mixed_servers: Whether the outcomes of one session or stream may come from servers of
            different versions or instruction sets, so that bits may differ; otherwise it ends with
            `FailedPrecondition`, reason "OTHER_BUILD", where no server of the build of its first
            outcome is left. Each other call is answered by one server of any build.
        server_arguments: Further command-line arguments of the server of "embedded:process".
        threads: That work on one problem of "embedded:"; None: all that the process may use.
        scene_connections: Most connections to one server over which `solve`, and a session whose
            first step is large, divide a scene, with the bits of the undivided one, so that the
            server receives, reads and answers it on as many threads. Each part counts as a call.
            Batches use one connection.

    Raises:
        InvalidArgument: An argument is malformed; `field` names it.
        Unavailable: The library or server to embed was not found or did not start, or a host name
            in a list is unknown.
    """
    client, server = open_client(
        address,
        tls,
        token,
        reconnect_within,
        allow_mixed_servers,
        server_arguments,
        threads,
        scene_connections,
    )
    return Client(NativeSolver(client), server)


class Client:
    """Client of servers or of the solver in this process, made by `connect`. Threads may share it.

    `timeout` is the deadline of a call [s]; None: no deadline. The solver stops shortly before it
    and returns the best iterate if it has one. A call whose connection or server is lost is
    repeated, until its deadline or for the time of `connect`. All calls raise `SapError`.

    Where a client solves in this process, forked processes may use it too, and a call ends with its
    solve: signals, as of Ctrl-C, are handled after it. Where it calls servers, they are handled
    while it waits. A forked process can use no client of servers of its parent, and cannot make one
    if its parent has had one: `FailedPrecondition`, which is a RuntimeError.
    """

    def __init__(self, solver: NativeSolver, server: EmbeddedServer | None = None) -> None:
        self._solver = solver
        self._server = server

    @property
    def address(self) -> str:
        """The address that `connect` got; of an embedded server, its Unix socket."""
        return self._solver.address

    def solve(
        self,
        problem: Problem,
        options: Options | None = None,
        *,
        timeout: float | None = None,
        split: bool | int = False,
    ) -> Solution:
        """Solves one problem.

        Args:
            problem: The problem.
            options: None: the server's defaults.
            timeout: Deadline of the call [s].
            split: Whether a scene of many large islands is solved on several servers at once: whole
                islands are dealt to as many shards, a call each, as the client's address has
                servers, or to the given number, as behind a balancer. The solution has the
                bits of the undivided one; its phases are timed as in the slowest shard. The scene
                stays whole where splitting would not pay, and in an embedded solver.
        """
        return self._solver.solve(problem, options, timeout, number_of_servers(split))

    def solve_batch(
        self,
        problems: Iterable[Problem],
        options: Options | None = None,
        *,
        timeout: float | None = None,
    ) -> list[Solution | SapError]:
        """Solves independent problems concurrently.

        Returns:
            For each problem, in order, its solution or the error that it failed with.
        """
        return self._solver.solve_batch(problems, options, timeout)

    def stream_batch(
        self,
        problems: Iterable[Problem],
        options: Options | None = None,
        *,
        timeout: float | None = None,
    ) -> Iterator[tuple[int, Solution | SapError]]:
        """Yields (index of the problem, outcome) as each of the problems is finished."""
        return self._solver.stream_batch(problems, options, timeout)

    def differentiate(
        self,
        problem: Problem,
        cotangents: Sequence[Cotangent] = (),
        *,
        tangents: Sequence[Problem] = (),
        velocity: ArrayLike = (),
        wanted: Sequence[str] = (),
        hold_delassus: bool = False,
        options: Options | None = None,
        timeout: float | None = None,
    ) -> Derivatives:
        """Derivatives of the solution of one problem with respect to its inputs.

        Reverse mode with `cotangents`, forward mode with `tangents`, or both. Each cotangent and
        tangent costs a solve with the factor of the Hessian that all share.

        Impulses have kinks: there the derivatives are those of one side, the branch that the solver
        takes (see `sap_islands.derivatives`), and never infinite or NaN. Check `kink_margin` of the
        result.

        Args:
            problem: The problem.
            cotangents: dL/d(output), in the shapes of `Solution`; one gradient is returned for
                each.
            tangents: Problems whose numbers are directions d(input); see `DifferentiateRequest`.
            velocity: [nv] velocity of the solution, if it is at hand [m/s, rad/s]. It is checked:
                an island where it does not meet the tolerance is solved from there.
            wanted: Inputs to return in gradients, for example "contacts.friction", "bodies.mass",
                "applied_impulse". Empty: all but dynamics_matrix, coupling_block, jacobian and
                angular_jacobian.
            hold_delassus: Whether the Delassus estimates w are constants.
            options: None: the server's defaults; `relative_tolerance` is 1e-10 here.
            timeout: Deadline of the call [s].

        Raises:
            InvalidArgument: `field` names the input, cotangent, tangent or path at fault.
        """
        request = DifferentiateRequest(
            problem, cotangents, tangents, velocity, wanted, hold_delassus, options
        )
        return self._solver.differentiate(request, timeout)

    def differentiate_batch(
        self,
        requests: Iterable[DifferentiateRequest],
        *,
        time_budget: float | None = None,
        timeout: float | None = None,
    ) -> list[Derivatives | SapError]:
        """Differentiates independent problems concurrently.

        Args:
            requests: The problems, each with its cotangents, tangents and options. The priority of
                the first is that of the batch.
            time_budget: Time for the whole batch [s]; None: unlimited.
            timeout: Deadline of the call [s].

        Returns:
            For each request, in order, its derivatives or the error that it failed with.
        """
        return self._solver.differentiate_batch(requests, time_budget, timeout)

    def session(
        self,
        options: Options | None = None,
        *,
        timeout: float | None = None,
        reconnect_within: float | None = None,
        low_latency: bool = False,
    ) -> Session:
        """Opens a session: a sequence of problems, each warm-started from the one before.

        Args:
            options: Options of the steps that are sent without their own.
            timeout: Deadline of the whole session [s]; for one step use `Options.time_budget`.
            reconnect_within: How long to look for a server after a lost connection [s]; 0: the
                session ends; None: as the client.
            low_latency: Whether the server keeps its processors out of deep idle states for 50 ms
                after each answer, with threads of idle priority. This shortens mainly the tail of
                the latency. The operator of the server may forbid it.
        """
        settings = SessionSettings(options, timeout, reconnect_within, low_latency)
        return self._solver.session(settings)

    def info(self, *, timeout: float | None = None) -> ServerInfo:
        """Version, limits and hardware of the server."""
        return self._solver.info(timeout)

    def close(self) -> None:
        """Closes the connection, once no call uses it; stops the server if it is embedded.

        In a process forked from that which made a client of servers it does nothing.
        """
        self._solver.close()
        if self._server is not None:
            self._server.stop()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
