"""TLS and tokens: a server that asks for both."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import sap_islands as sap
import sap_islands.aio
import trustme
from sap_islands.__main__ import main

from support.scenes import balls_on_floor, same_bits
from support.server_process import ServerProcess

TOKEN = "open-sesame-open-sesame"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def secure_address(
    authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("server")
    certificate = authority.issue_cert("localhost", "sap.example")
    certificate.private_key_pem.write_to_path(str(directory / "key"))
    for blob in certificate.cert_chain_pems:
        blob.write_to_path(str(directory / "certificate"), append=True)
    authority.cert_pem.write_to_path(str(directory / "ca"))
    (directory / "tokens").write_text(f"client {TOKEN}\n")
    (directory / "tokens").chmod(0o600)
    with ServerProcess(
        "localhost:0",
        *("--tls-cert", str(directory / "certificate"), "--tls-key", str(directory / "key")),
        *("--tls-client-ca", str(directory / "ca"), "--token-file", str(directory / "tokens")),
    ) as server:
        yield f"localhost:{server.address.rpartition(':')[2]}"


@pytest.fixture(scope="module")
def tls(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> sap.Tls:
    """TLS settings of the client, with certificates as bytes and the key as a file."""
    certificate = authority.issue_cert("client.example")
    key_file = tmp_path_factory.mktemp("keys") / "client.key"
    certificate.private_key_pem.write_to_path(str(key_file))
    return sap.Tls(
        root_certificates=b"# a comment before it\n" + authority.cert_pem.bytes(),
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


def test_the_command_line_has_the_flags_of_the_other_client(
    secure_address: str, tls: sap.Tls, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert isinstance(tls.root_certificates, bytes)
    assert isinstance(tls.certificate_chain, bytes)
    sap.save_problem(balls_on_floor([0.0]), tmp_path / "problem.json")
    (tmp_path / "ca").write_bytes(tls.root_certificates)
    (tmp_path / "certificate").write_bytes(tls.certificate_chain)
    (tmp_path / "token").write_text(TOKEN + "\n")
    encrypted = [
        *("solve", str(tmp_path / "problem.json"), "--server", secure_address),
        *("--tls-ca", str(tmp_path / "ca"), "--tls-cert", str(tmp_path / "certificate")),
        *("--tls-key", str(tls.private_key), "--tls-server-name", "sap.example"),
    ]
    assert main(encrypted) == 2
    assert "a valid bearer token is required" in capsys.readouterr().err
    assert main([*encrypted, "--token-file", str(tmp_path / "token")]) == 0
    assert main([*encrypted, "--token-file", str(tmp_path / "nothing")]) == 2


def test_server_name_may_differ_from_the_address(secure_address: str, tls: sap.Tls) -> None:
    named = sap.Tls(
        tls.root_certificates, tls.certificate_chain, tls.private_key, server_name="sap.example"
    )
    with (
        sap.connect(secure_address, tls=named, token=TOKEN) as secure,
    ):
        assert secure.info().boot_id


@pytest.mark.parametrize("server_name", [None, "sap.example"])
def test_list_of_one_host_needs_no_server_name(
    secure_address: str, tls: sap.Tls, server_name: str | None
) -> None:
    named = replace(tls, server_name=server_name)
    with (
        sap.connect(f"{secure_address},{secure_address}", tls=named, token=TOKEN) as secure,
    ):
        assert secure.info().boot_id


def test_list_of_several_hosts_needs_a_server_name(secure_address: str, tls: sap.Tls) -> None:
    port = secure_address.rpartition(":")[2]
    address = f"localhost:{port},127.0.0.1:{port}"
    with pytest.raises(sap.InvalidArgument, match="several hosts") as caught:
        sap.connect(address, tls=tls)
    assert caught.value.field == "credentials.server_name"
    with (
        sap.connect(address, tls=replace(tls, server_name="sap.example"), token=TOKEN) as secure,
    ):
        assert secure.info().boot_id
    with (
        sap.connect(
            address, tls=replace(tls, server_name="other.example"), reconnect_within=0
        ) as secure,
        pytest.raises(sap.Unavailable),
    ):
        secure.info()


def test_name_of_dns_is_expected_in_the_certificate(secure_address: str, tls: sap.Tls) -> None:
    with (
        sap.connect(f"dns:///{secure_address}", tls=tls, token=TOKEN) as secure,
    ):
        assert secure.info().boot_id


def test_call_without_the_token_is_refused(secure_address: str, tls: sap.Tls) -> None:
    with sap.connect(secure_address, tls=tls) as secure:
        with pytest.raises(sap.Unauthenticated):
            secure.info()
        with pytest.raises(sap.Unauthenticated):
            secure.session()


@pytest.mark.parametrize("encrypted", [True, False])
def test_call_to_a_server_with_other_tls_says_what_to_do(
    secure_address: str, encrypted: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    stranger = encrypted and sap.Tls(root_certificates=trustme.CA().cert_pem.bytes())
    said = "an authority that is not trusted" if encrypted else "without TLS: it may want it"
    with (
        sap.connect(secure_address, tls=stranger, reconnect_within=0) as secure,
        pytest.raises(sap.Unavailable, match=said),
    ):
        secure.info()
    assert capfd.readouterr() == ("", "")


def test_missing_certificate_is_named(tmp_path: Path) -> None:
    missing = sap.Tls(root_certificates=tmp_path / "nowhere.pem")
    with pytest.raises(sap.InvalidArgument, match=r"nowhere\.pem: cannot open: No such file"):
        sap.connect("localhost:1", tls=missing)


def test_a_certificate_that_is_no_pem_is_named() -> None:
    with pytest.raises(sap.InvalidArgument, match="not in PEM") as caught:
        sap.connect("localhost:1", tls=sap.Tls(root_certificates=b"DER"))
    assert caught.value.field == "tls.root_certificates"
