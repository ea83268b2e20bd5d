"""TLS, tokens and priorities: a proxy with TLS and tokens in front of a server without."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent import futures
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
import sap_islands as sap
import sap_islands.aio
import trustme

from support.scenes import balls_on_floor, same_bits

TOKEN = "open sesame"


class _Proxy(grpc.GenericRpcHandler):
    """Forwards calls that have the token, unchanged; rejects others."""

    def __init__(self, target: Any) -> None:
        self._target = target

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        if "sap.v1" not in details.method:
            return None  # no health service: gRPC takes the server for healthy
        allowed = ("authorization", f"Bearer {TOKEN}") in (details.invocation_metadata or ())
        if details.method.endswith("SolveSession"):
            forward = self._target.stream_stream(details.method)

            def stream(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
                if not allowed:
                    context.abort(grpc.StatusCode.UNAUTHENTICATED, "who are you?")
                yield from forward(requests)

            return grpc.stream_stream_rpc_method_handler(stream)
        call = self._target.unary_unary(details.method)

        def unary(request: bytes, context: grpc.ServicerContext) -> bytes:
            if not allowed:
                context.abort(grpc.StatusCode.UNAUTHENTICATED, "who are you?")
            return bytes(call(request))

        return grpc.unary_unary_rpc_method_handler(unary)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def secure_address(tcp_address: str, authority: trustme.CA) -> Iterator[str]:
    certificate = authority.issue_cert("localhost", "sap.example")
    key = certificate.private_key_pem.bytes()
    chain = b"".join(blob.bytes() for blob in certificate.cert_chain_pems)
    server: Any = grpc.server(futures.ThreadPoolExecutor(4))
    with grpc.insecure_channel(tcp_address) as target:
        server.add_generic_rpc_handlers((_Proxy(target),))
        port = server.add_secure_port(
            "localhost:0",
            grpc.ssl_server_credentials(
                [(key, chain)], authority.cert_pem.bytes(), require_client_auth=True
            ),
        )
        server.start()
        yield f"localhost:{port}"
        server.stop(None).wait(10)


@pytest.fixture(scope="module")
def tls(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> sap.Tls:
    """TLS settings of the client, with certificates as bytes and the key as a file."""
    certificate = authority.issue_cert("client.example")
    key_file = tmp_path_factory.mktemp("keys") / "client.key"
    certificate.private_key_pem.write_to_path(str(key_file))
    return sap.Tls(
        root_certificates=authority.cert_pem.bytes(),
        certificate_chain=certificate.cert_chain_pems[0].bytes(),
        private_key=key_file,
    )


def test_calls_over_tls_with_a_token_give_the_same_bits(
    client: sap.Client, secure_address: str, tls: sap.Tls
) -> None:
    problem = balls_on_floor([0.0, 0.3])
    expected = client.solve(problem)
    with sap.connect(secure_address, tls=tls, token=TOKEN) as secure:
        assert same_bits(secure.solve(problem), expected)
        with secure.session() as session:
            assert same_bits(session.step(problem), expected)

    async def run() -> None:
        async with sap_islands.aio.connect(secure_address, tls=tls, token=TOKEN) as twin:
            assert same_bits(await twin.solve(problem), expected)

    asyncio.run(run())


def test_server_name_may_differ_from_the_address(
    secure_address: str, tls: sap.Tls, tcp_address: str
) -> None:
    named = sap.Tls(
        tls.root_certificates, tls.certificate_chain, tls.private_key, server_name="sap.example"
    )
    with (
        sap.connect(secure_address, tls=named, token=TOKEN) as secure,
        sap.connect(tcp_address) as plain,
    ):
        assert secure.info() == plain.info()


@pytest.mark.parametrize("server_name", [None, "sap.example"])
def test_list_of_one_host_needs_no_server_name(
    secure_address: str, tls: sap.Tls, tcp_address: str, server_name: str | None
) -> None:
    named = replace(tls, server_name=server_name)
    with (
        sap.connect(f"{secure_address},{secure_address}", tls=named, token=TOKEN) as secure,
        sap.connect(tcp_address) as plain,
    ):
        assert secure.info() == plain.info()


def test_list_of_several_hosts_needs_a_server_name(
    secure_address: str, tls: sap.Tls, tcp_address: str
) -> None:
    port = secure_address.rpartition(":")[2]
    address = f"localhost:{port},127.0.0.1:{port}"
    with pytest.raises(sap.InvalidArgument, match=r"hosts of .* differ") as caught:
        sap.connect(address, tls=tls)
    assert caught.value.field == "tls.server_name"
    with (
        sap.connect(address, tls=replace(tls, server_name="sap.example"), token=TOKEN) as secure,
        sap.connect(tcp_address) as plain,
    ):
        assert secure.info() == plain.info()
    with (
        sap.connect(
            address, tls=replace(tls, server_name="other.example"), reconnect_within=0
        ) as secure,
        pytest.raises(sap.Unavailable),
    ):
        secure.info()


def test_name_of_dns_is_expected_in_the_certificate(
    secure_address: str, tls: sap.Tls, tcp_address: str
) -> None:
    with (
        sap.connect(f"dns:///{secure_address}", tls=tls, token=TOKEN) as secure,
        sap.connect(tcp_address) as plain,
    ):
        assert secure.info() == plain.info()


def test_call_without_the_token_is_refused(secure_address: str, tls: sap.Tls) -> None:
    with sap.connect(secure_address, tls=tls) as secure:
        with pytest.raises(sap.Unauthenticated, match="who are you"):
            secure.info()
        with pytest.raises(sap.Unauthenticated):
            secure.session()


def test_call_to_an_untrusted_server_fails(secure_address: str) -> None:
    stranger = sap.Tls(root_certificates=trustme.CA().cert_pem.bytes())
    with (
        sap.connect(secure_address, tls=stranger, reconnect_within=0) as secure,
        pytest.raises(sap.Unavailable),
    ):
        secure.info()


def test_missing_certificate_is_named(tmp_path: Path) -> None:
    missing = sap.Tls(root_certificates=tmp_path / "nowhere.pem")
    with pytest.raises(sap.InvalidArgument, match=r"nowhere\.pem: No such file"):
        sap.connect("localhost:1", tls=missing)


class _Listener(grpc.GenericRpcHandler):
    """Records the priority header of each call, and rejects the call."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, object]] = []

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        priority = dict(details.invocation_metadata or ()).get("sap-priority")
        self.heard.append((details.method.rpartition("/")[2], priority))

        def refuse(request: bytes, context: grpc.ServicerContext) -> Any:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "heard")

        if details.method.endswith("StreamBatch"):
            return grpc.unary_stream_rpc_method_handler(refuse)
        return grpc.unary_unary_rpc_method_handler(refuse)


@pytest.fixture
def listener() -> Iterator[tuple[_Listener, str]]:
    handler = _Listener()
    server = grpc.server(futures.ThreadPoolExecutor(2), handlers=[handler])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield handler, f"127.0.0.1:{port}"
    server.stop(0).wait()


CALLS = ("Solve", "SolveBatch", "StreamBatch", "Differentiate", "DifferentiateBatch")


@pytest.mark.parametrize(
    ("priority", "expected"),
    [
        (sap.Priority.HIGH, "high"),
        (sap.Priority.NORMAL, None),
        (sap.Priority.UNSPECIFIED, None),
    ],
)
def test_high_priority_is_sent_in_the_headers(
    listener: tuple[_Listener, str], priority: sap.Priority, expected: str | None
) -> None:
    handler, address = listener
    problem, options = balls_on_floor([0.1]), sap.Options(priority=priority)
    request = sap.DifferentiateRequest(problem, options=options)
    with sap.connect(address) as client:
        for call in (
            lambda: client.solve(problem, options),
            lambda: client.solve_batch([problem], options),
            lambda: list(client.stream_batch([problem], options)),
            lambda: client.differentiate(problem, options=options),
            lambda: client.differentiate_batch([request]),
        ):
            with pytest.raises(sap.InvalidArgument, match="heard"):
                call()
    assert handler.heard == [(name, expected) for name in CALLS]


def test_high_priority_is_sent_in_the_headers_by_asyncio(listener: tuple[_Listener, str]) -> None:
    handler, address = listener
    problem, options = balls_on_floor([0.1]), sap.Options(priority=sap.Priority.HIGH)
    request = sap.DifferentiateRequest(problem, options=options)

    async def call_all() -> None:
        async with sap.aio.connect(address) as client:
            with pytest.raises(sap.InvalidArgument, match="heard"):
                await client.solve(problem, options)
            with pytest.raises(sap.InvalidArgument, match="heard"):
                await client.solve_batch([problem], options)
            with pytest.raises(sap.InvalidArgument, match="heard"):
                _ = [outcome async for outcome in client.stream_batch([problem], options)]
            with pytest.raises(sap.InvalidArgument, match="heard"):
                await client.differentiate(problem, options=options)
            with pytest.raises(sap.InvalidArgument, match="heard"):
                await client.differentiate_batch([request])

    asyncio.run(call_all())
    assert handler.heard == [(name, "high") for name in CALLS]
