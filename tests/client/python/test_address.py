"""Addresses: what is refused by name, and where a token may go."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import sap_islands as sap
import sap_islands.aio


@pytest.mark.parametrize(
    "address",
    [
        "",
        "localhost",
        "localhost:0",
        "host:99999",
        "host:+1",
        "::1:50051",
        "[host]:1",
        "http://host:1",
        "unix:",
        "a:1,",
        ",a:1",
        "a:1,b",
        "a:1, b:2",
        "a:1,unix:/run/sap.sock",
        "dns:solvers:1",
        "dns:///solvers",
        "dns:///a:1,b:2",
        "xds:solvers",
        "xds:///",
    ],
)
def test_malformed_address_is_refused(address: str) -> None:
    for connect in (sap.connect, sap_islands.aio.connect):
        with pytest.raises(sap.InvalidArgument, match="must be") as caught:
            connect(address)
        assert caught.value.field == "address"


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("address", {"address": None}),
        ("address", {"address": b"embedded:"}),
        ("tls", {"address": "localhost:1", "tls": "ca.pem"}),
        ("threads", {"address": "embedded:", "threads": 1.5}),
        ("threads", {"address": "embedded:", "threads": "2"}),
        ("server_arguments", {"address": "embedded:process", "server_arguments": "--threads 2"}),
        ("server_arguments", {"address": "embedded:process", "server_arguments": ["--threads", 2]}),
    ],
)
def test_argument_of_the_wrong_type_is_named(field: str, arguments: dict[str, Any]) -> None:
    for connect in (sap.connect, sap_islands.aio.connect):
        with pytest.raises(sap.InvalidArgument, match=f"{field} is ") as caught:
            connect(**arguments)
        assert caught.value.field == field


@pytest.mark.parametrize("address", ["embedded", "Embedded:", "embedded:thread"])
def test_address_that_is_nearly_embedded_is_refused_with_the_forms(address: str) -> None:
    with pytest.raises(sap.InvalidArgument, match="must be embedded:, HOST:PORT, "):
        sap.connect(address)


def test_malformed_entry_of_a_list_is_named() -> None:
    with pytest.raises(sap.InvalidArgument, match="'b:x' in it must be HOST:PORT"):
        sap.connect("a:1,b:x,c:3")


def test_unknown_name_in_a_list_is_named() -> None:
    with pytest.raises(sap.Unavailable, match=r"nowhere\.invalid:2 has no address") as caught:
        sap.connect("127.0.0.1:1,nowhere.invalid:2")
    assert caught.value.field == "address"


@pytest.mark.parametrize(
    ("address", "is_local"),
    [
        ("unix:/run/sap.sock", True),
        ("127.0.0.1:1", True),
        ("[::1]:1", True),
        ("localhost:1", True),
        ("127.0.0.1:1,localhost:2,[::1]:3", True),
        ("dns:///localhost:1", True),
        ("10.0.0.1:1", False),
        ("solvers:1", False),
        ("127.0.0.1:1,10.0.0.1:2", False),
        ("dns:///solvers:1", False),
        ("dns://10.0.0.53/localhost:1", False),
        ("dns:///127.0.0.1.example:1", False),
        ("xds:///localhost", False),
    ],
)
def test_token_in_clear_text_stays_on_this_machine(address: str, is_local: bool) -> None:
    async def connect() -> None:
        await sap_islands.aio.connect(address, token="open-sesame").close()

    if is_local:
        sap.connect(address, token="open-sesame").close()
        asyncio.run(connect())
        return
    with pytest.raises(sap.InvalidArgument, match="unencrypted") as caught:
        sap.connect(address, token="open-sesame")
    assert caught.value.field == "credentials.token"


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_time_to_reconnect_is_checked(seconds: float) -> None:
    for connect in (sap.connect, sap_islands.aio.connect):
        with pytest.raises(sap.InvalidArgument, match="finite and >= 0") as caught:
            connect("127.0.0.1:1", reconnect_within=seconds)
        assert caught.value.field == "reconnect_within"
    with sap.connect("127.0.0.1:1") as client, pytest.raises(sap.InvalidArgument):
        client.session(reconnect_within=seconds)
