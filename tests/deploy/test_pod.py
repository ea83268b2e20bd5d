"""The containers of a pod of Kubernetes as processes of this machine: server and proxy."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import sap_islands as sap
from sap_islands.binaries import find_server

from fleet import (
    DEPLOY,
    TOKEN,
    Process,
    box_on_floor,
    connect,
    free_port,
    status_of,
    wait_until,
    write_secrets,
)
from load import Load
from test_manifests import CONTAINER, image_flags, proxy_environment

SEEN_S = 2.5  # the proxy looks at its certificate every second


class Pod:
    """Both containers, with the paths and ports of this test."""

    def __init__(self, directory: Path, lame_duck_s: int) -> None:
        self.secrets = write_secrets(directory)
        self.port, self._metrics = free_port(), free_port()
        (directory / "proxy").mkdir()
        self.certificate = directory / "proxy" / "proxy.pem"
        shutil.copy(directory / "server.crt", self.certificate)
        shutil.copy(directory / "server.key", f"{self.certificate}.key")
        replaced = {
            "/run/sap-server": str(directory),
            "/etc/sap-server": str(directory),
            "/etc/sap-proxy": str(directory / "proxy"),
            "0.0.0.0:9464": f"127.0.0.1:{self._metrics}",
            "0.0.0.0:50051": f"127.0.0.1:{self.port}",
            "--lame-duck-s=10": f"--lame-duck-s={lame_duck_s}",
        }

        def here(word: str) -> str:
            for there, path in replaced.items():
                word = word.replace(there, path)
            return word

        flags = [here(flag) for flag in [*image_flags(), *CONTAINER["args"]]]
        environment = {name: here(value) for name, value in proxy_environment().items()}
        environment["SAP_LAME_DUCK_S"] = str(lame_duck_s)
        path = os.environ["PATH"] + ":/usr/sbin"
        self.server = Process([find_server(), *flags])
        self.proxy = Process(
            [DEPLOY / "proxy.sh", DEPLOY / "haproxy.cfg"], os.environ | environment | {"PATH": path}
        )

    def probe(self, name: str) -> int:
        """Status of a probe of the server's container."""
        get = CONTAINER[name]["httpGet"]
        assert get["port"] == "metrics"
        return status_of(f"http://127.0.0.1:{self._metrics}{get['path']}")

    def terminate(self) -> None:
        """As the kubelet does: both get SIGTERM at the same time."""
        self.proxy.terminate()
        self.server.terminate()

    def answers(self, authority: Path | None = None) -> bool:
        """Whether a new client that trusts the authority gets an answer."""
        tls = sap.Tls(root_certificates=authority or self.secrets / "ca.crt")
        try:
            with sap.connect(f"localhost:{self.port}", tls=tls, token=TOKEN) as client:
                client.info(timeout=5)
        except sap.SapError:
            return False
        return True


@contextlib.contextmanager
def started_pod(directory: Path, lame_duck_s: int) -> Iterator[Pod]:
    pod = Pod(directory, lame_duck_s)
    with pod.server, pod.proxy:
        try:
            wait_until(lambda: pod.probe("startupProbe") == 200, "the server is ready")
            wait_until(pod.answers, "the proxy serves")
            yield pod
        finally:
            # HAProxy would outlive the script if that were killed.
            pod.terminate()
            pod.proxy.wait()


def test_a_pod_that_is_ended_announces_it_and_fails_no_call(tmp_path: Path) -> None:
    with started_pod(tmp_path, lame_duck_s=10) as pod:
        assert pod.probe("readinessProbe") == pod.probe("livenessProbe") == 200
        load = Load(("unary",), lambda: connect(pod.port, pod.secrets))
        with load, connect(pod.port, pod.secrets) as client:
            pod.terminate()
            wait_until(lambda: pod.probe("readinessProbe") == 503, "the server announces its end")
            # Both containers serve those who have not noticed.
            assert pod.probe("livenessProbe") == 200
            assert client.solve(box_on_floor()).velocity.shape == (6,)
            assert pod.answers()
        assert load.violations() == []
        assert pod.server.wait() == 0
        assert pod.proxy.wait() == 0


def test_a_new_certificate_is_loaded_and_an_unusable_one_is_not(tmp_path: Path) -> None:
    with started_pod(tmp_path, lame_duck_s=0) as pod:
        other = tmp_path / "other"
        other.mkdir()
        write_secrets(other)
        # The key of another certificate, then a certificate that is cut off.
        Path(f"{pod.certificate}.key").write_bytes((other / "server.key").read_bytes())
        time.sleep(SEEN_S)
        assert pod.answers()
        pod.certificate.write_bytes(pod.certificate.read_bytes()[:100])
        time.sleep(SEEN_S)
        assert pod.answers()
        pod.certificate.write_bytes((other / "server.crt").read_bytes())
        wait_until(lambda: pod.answers(other / "ca.crt"), "the new certificate is served")
        assert not pod.answers()
