"""Alerts and dashboard, on what a live server tells Prometheus."""

from __future__ import annotations

import json
import math
import re
import subprocess
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sap_islands as sap
import yaml

from fleet import (
    DEPLOY,
    Process,
    Server,
    box_on_floor,
    connect,
    free_port,
    wait_until,
    write_secrets,
)

PROMETHEUS = DEPLOY / "prometheus"
DASHBOARD = json.loads((DEPLOY / "grafana" / "sap-server.json").read_text())


def promtool(*arguments: str | Path, text: str = "") -> None:
    command = ["promtool", *map(str, arguments)]
    done = subprocess.run(
        command, input=text, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def alert_rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((PROMETHEUS / "alerts.yml").read_text())["groups"]
    return list(group["rules"])


def dashboard_queries() -> list[str]:
    return [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]


class Prometheus:
    """Asks a running Prometheus."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/api/v1/"

    def get(self, path: str, **parameters: str) -> Any:
        url = self._url + path + "?" + urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]

    def values(self, expression: str) -> list[float]:
        result = self.get("query", query=expression)["result"]
        return [float(sample["value"][1]) for sample in result]

    def has_data(self, expression: str) -> bool:
        """Whether it has a value, and none that is no number, as of an empty histogram."""
        try:
            values = self.values(expression)
        except OSError:
            return False  # not listening yet
        return bool(values) and not any(map(math.isnan, values))

    def wait_for(self, expression: str) -> None:
        wait_until(lambda: self.has_data(expression), f"there is data for {expression}")


def use_everything(server: Server, secrets: Path, stop: threading.Event) -> None:
    """Calls of every kind, also some that fail, until stopped."""
    problem = box_on_floor()
    port = int(server.address.split(":")[1])
    with connect(port, secrets) as client, client.session() as session:
        while not stop.wait(0.02):
            client.solve(problem)
            session.step(problem)
            client.solve(problem, sap.Options(max_iterations=1))
            # The client may have two sessions.
            with client.session() as second:
                second.step(problem)
                with pytest.raises(sap.SapError), client.session() as third:
                    third.step(problem)


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A server and Prometheus with the files that ship, except for the target and the intervals."""
    directory = tmp_path_factory.mktemp("prometheus")
    secrets = write_secrets(directory, "sessions=2")
    configuration = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())
    configuration["global"] = {"scrape_interval": "500ms", "evaluation_interval": "500ms"}
    configuration["rule_files"] = [str(PROMETHEUS / "alerts.yml")]
    (job,) = configuration["scrape_configs"]
    del job["dns_sd_configs"]
    metrics = f"127.0.0.1:{free_port()}"
    job["static_configs"] = [{"targets": [metrics]}]
    file = directory / "prometheus.yml"
    file.write_text(yaml.safe_dump(configuration))
    port = free_port()
    command = [
        "prometheus",
        f"--config.file={file}",
        f"--storage.tsdb.path={directory / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    stop = threading.Event()
    with (
        Server(f"127.0.0.1:{free_port()}", metrics, secrets) as server,
        Process(command),
    ):
        load = threading.Thread(target=use_everything, args=(server, secrets, stop))
        load.start()
        yield Prometheus(port)
        stop.set()
        load.join()


def test_the_files_are_what_prometheus_reads() -> None:
    promtool("check", "config", PROMETHEUS / "prometheus.yml")


def test_each_alert_leads_to_its_section_of_the_runbook() -> None:
    runbook = (DEPLOY / "docs" / "runbook.md").read_text()
    sections = re.findall(r"^## (\w+)$", runbook, re.MULTILINE)
    assert sections == [rule["alert"] for rule in alert_rules()]
    for rule in alert_rules():
        _, anchor = rule["annotations"]["runbook_url"].split("/deploy/docs/runbook.html#")
        assert anchor == rule["alert"].lower()


def test_alerts_fire_when_they_should_and_only_then() -> None:
    promtool("test", "rules", PROMETHEUS / "alerts_test.yml")
    tests = yaml.safe_load((PROMETHEUS / "alerts_test.yml").read_text())["tests"]
    cases = [case for test in tests for case in test["alert_rule_test"]]
    for rule in alert_rules():
        expected = [
            bool(case["exp_alerts"]) for case in cases if case["alertname"] == rule["alert"]
        ]
        assert set(expected) == {True, False}, rule["alert"]


def test_every_query_of_the_dashboard_has_data(prometheus: Prometheus) -> None:
    queries = dashboard_queries()
    assert len(queries) > 20
    for query in queries:
        expression = query.replace("$instance", ".*").replace("$__rate_interval", "5s")
        assert "$" not in expression
        prometheus.wait_for(expression)


def test_the_servers_to_choose_from_are_those_that_are_scraped(prometheus: Prometheus) -> None:
    (variable,) = [v for v in DASHBOARD["templating"]["list"] if v["type"] == "query"]
    found = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"])
    assert found is not None
    prometheus.wait_for(found[1])
    (series,) = prometheus.get("query", query=found[1])["result"]
    assert series["metric"][found[2]].startswith("127.0.0.1:")


def test_every_alert_looks_at_something_that_the_server_tells(prometheus: Prometheus) -> None:
    selectors = {
        selector for rule in alert_rules() for selector in re.findall(r"\w+\{[^}]*\}", rule["expr"])
    }
    assert len(selectors) >= len(alert_rules())
    for selector in selectors:
        prometheus.wait_for(selector)
    (group,) = prometheus.get("rules")["groups"]
    assert [rule["health"] for rule in group["rules"]] == ["ok"] * len(alert_rules())


def test_panels_stand_side_by_side() -> None:
    cells = [
        (x, y)
        for panel in DASHBOARD["panels"]
        for place in [panel["gridPos"]]
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    identifiers = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(identifiers) == len(set(identifiers))
