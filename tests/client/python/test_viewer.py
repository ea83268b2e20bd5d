"""The page of the viewer in a headless browser: its contents and its buttons."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from conftest import ROOT

CHROMIUM = "/usr/bin/chromium"
FLAGS = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
PATIENCE_MS = 60_000
ISLANDS = re.compile(r"(\d+) islands, (\d+) contacts")


def test_page_shows_islands_and_pauses(tmp_path: Path) -> None:
    from playwright.sync_api import expect, sync_playwright

    command = [sys.executable, "-m", "sap_islands", "view", "clutter", "--bodies", "12"]
    viewer = subprocess.Popen([*command, "--port", "8400"], stdout=subprocess.PIPE, text=True)
    try:
        assert viewer.stdout is not None
        url = viewer.stdout.readline().split()[2]
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            page = browser.new_page(viewport={"width": 1000, "height": 640})
            page.set_default_timeout(PATIENCE_MS)
            page.goto(url)
            status = page.get_by_text(ISLANDS).first
            status.wait_for()
            page.get_by_role("button", name="Pause").click()
            page.get_by_role("button", name="Play").wait_for()
            page.wait_for_timeout(500)
            shown = status.inner_text()
            match = ISLANDS.search(shown)
            assert match is not None
            # Each row of the table is an island, and no more than eight are listed.
            rows = page.locator("table", has_text="gap [J]").locator("tbody tr")
            expect(rows).to_have_count(min(int(match.group(1)), 8))
            # No column is cut off, and no number breaks into two lines.
            fits = "table => table.offsetWidth <= table.parentElement.clientWidth"
            table = page.locator(".islands table")
            assert table.evaluate(fits)
            heights = rows.evaluate_all("rows => rows.map(row => row.offsetHeight)")
            assert len(set(heights)) <= 1
            page.wait_for_timeout(1000)
            assert status.inner_text() == shown
            page.screenshot(path=tmp_path / "page.png")
            page.get_by_role("button", name="Play").click()
            page.get_by_role("button", name="Pause").wait_for()
            expect(status).not_to_have_text(shown, timeout=PATIENCE_MS)
            browser.close()
    finally:
        viewer.terminate()
        viewer.wait(20)
        assert viewer.stdout is not None
        viewer.stdout.close()
    assert (tmp_path / "page.png").stat().st_size > 10_000


def test_one_command_leads_from_a_clone_to_the_page() -> None:
    command = [str(ROOT / "client" / "python" / "view.sh"), "clutter", "--bodies", "8"]
    command += ["--time", "1", "--port", "8500"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert result.returncode == 0, result.stderr
    assert "Look at http://127.0.0.1:" in result.stdout
