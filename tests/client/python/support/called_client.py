"""Makes the calls that a suite of tests/e2e asks for through a Unix socket.

called_client.py sync|asyncio PATH SETTINGS

The settings are a JSON object: arguments of `connect`, and `timeout`, that of each call and of
sessions. Each connection to the socket makes one call at a time and has a session of its own: in a
thread of its own, or for asyncio as a task of one event loop. `python_client.cc` has the other end.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import socket
import struct
import sys
import threading
from collections.abc import AsyncIterator
from typing import Any

import sap_islands as sap
import sap_islands.aio

LENGTH = struct.Struct("<I")
HEAD = struct.Struct("<iIBI")  # code, number, warm_started, length
END_OF_CALL = 0xFFFFFFFF  # in place of a number
ERROR_FIELDS = ("message", "field", "reason", "request_id", "server", "lost_attempts")

Numbered = tuple[int, bool, Any]  # number of a problem or step, warm_started, outcome


async def value(result: Any) -> Any:
    """What a function of either face returns."""
    return await result if inspect.isawaitable(result) else result


async def each(items: Any) -> AsyncIterator[Any]:
    """What an iterator of either face yields."""
    if hasattr(items, "__aiter__"):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item


class Caller:
    """Makes the calls of one connection."""

    def __init__(self, client: Any, timeout: float | None) -> None:
        self._client = client
        self._timeout = timeout
        self._session: Any = None

    async def outcomes(
        self, operation: bytes, problems: list[sap.Problem]
    ) -> AsyncIterator[Numbered]:
        """The outcomes of a call, which raises its error."""
        client, session, timeout = self._client, self._session, self._timeout
        if operation == b"s":
            yield 0, False, await value(client.solve(problems[0], timeout=timeout))
        elif operation == b"b":
            solved = await value(client.solve_batch(problems, timeout=timeout))
            for index, outcome in enumerate(solved):
                yield index, False, outcome
        elif operation == b"m":
            async for index, outcome in each(client.stream_batch(problems, timeout=timeout)):
                yield index, False, outcome
        elif operation == b"o":
            self._session = await value(client.session(timeout=timeout))
        elif operation == b"p":
            yield 0, False, await value(session.step(problems[0]))
        elif operation == b"n":
            await value(session.send(problems[0]))
        elif operation == b"r":
            step = await value(session.receive())
            yield step.step_id, step.warm_started, step.outcome
        elif operation == b"c":
            await value(session.close())

    async def close(self) -> None:
        if self._session is not None:
            await value(self._session.close())


def frame(number: int, warm_started: bool, outcome: Any) -> bytes:
    """An outcome as it is written; None: the call has ended well."""
    code, contents = 0, b""
    if isinstance(outcome, sap.SapError):
        fields = {name: getattr(outcome, name) for name in ERROR_FIELDS}
        code, contents = int(outcome.code), json.dumps(fields).encode()
    elif outcome is not None:
        contents = outcome.to_bytes()
    return HEAD.pack(code, number, warm_started, len(contents)) + contents


async def serve(caller: Caller, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Makes the calls of a connection until it is closed."""

    async def read_number() -> int:
        (number,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
        return int(number)

    while operation := await reader.read(1):
        problems = []
        for _ in range(await read_number()):
            data = await reader.readexactly(await read_number())
            problems.append(sap.Problem.from_bytes(data))
        error = None
        try:
            async for outcome in caller.outcomes(operation, problems):
                writer.write(frame(*outcome))
        except sap.SapError as caught:
            error = caught
        writer.write(frame(END_OF_CALL, False, error))
        await writer.drain()
    await caller.close()
    writer.close()


def serve_in_threads(listener: socket.socket, client: sap.Client, timeout: float | None) -> None:
    """Each connection in a thread, whose event loop the calls block."""

    async def serve_one(connection: socket.socket) -> None:
        await serve(Caller(client, timeout), *await asyncio.open_connection(sock=connection))

    def run(connection: socket.socket) -> None:
        asyncio.run(serve_one(connection))

    while True:
        connection, _ = listener.accept()
        threading.Thread(target=run, args=(connection,), daemon=True).start()


async def serve_in_tasks(
    listener: socket.socket, client: sap_islands.aio.Client, timeout: float | None
) -> None:
    """Each connection as a task of this event loop."""
    server = await asyncio.start_unix_server(
        lambda reader, writer: serve(Caller(client, timeout), reader, writer), sock=listener
    )
    await server.serve_forever()


def main() -> None:
    face, path, text = sys.argv[1:]
    settings = json.loads(text)
    timeout = settings.pop("timeout", None)
    names = settings.keys() & {"root_certificates", "server_name"}
    if names:
        settings["tls"] = sap.Tls(**{name: settings.pop(name) for name in names})
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(128)
        print(f"listening on {path}", flush=True)
        if face == "sync":
            serve_in_threads(listener, sap.connect(**settings), timeout)
        else:
            asyncio.run(serve_in_tasks(listener, sap_islands.aio.connect(**settings), timeout))


if __name__ == "__main__":
    main()
