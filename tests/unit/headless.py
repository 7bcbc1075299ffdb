"""Pages tried in headless Chromium: a script runs inside the page, what it finds comes back, complaints fail."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--enable-logging=stderr",
)
# Runs first of all scripts: keeps what goes wrong before the page's own scripts are there. Frames come from timers, as
# the virtual time of a headless page runs ahead of its display.
_WATCH = """
window.wrong = [];
addEventListener("error", (event) => wrong.push(event.message || event.target.outerHTML), true);
addEventListener("unhandledrejection", (event) => wrong.push(String(event.reason)));
window.requestAnimationFrame = (draw) => setTimeout(() => draw(performance.now()), 16);
"""
_PROBE = """
setTimeout(async () => {
  const result = document.createElement("pre");
  result.id = "found";
  try {
    const found = await (async () => { %s })();
    result.textContent = JSON.stringify({ found, wrong });
  } catch (error) {
    result.textContent = JSON.stringify({ wrong: [...wrong, String(error.stack)] });
  }
  document.body.append(result);
}, 300);
"""


def chromium() -> str:
    """Return the browser's path, or skip the test."""
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip("needs chromium (apt-get install chromium)")
    return path


def browse(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the browser with an empty profile in `folder`; raises where it fails or a page complains on the console."""
    command = [chromium(), *FLAGS, f"--user-data-dir={folder / 'profile'}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    complaints = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    assert not complaints, complaints
    return done


def probe(page: Path, script: str, *, width: int = 1240, height: int = 1000, dark: bool = False) -> Any:
    """Return what `script`, the body of an async function, returns inside `page`; errors of the page fail."""
    html = page.read_text(encoding="utf-8")
    html = html.replace("<title>", f"<script>{_WATCH}</script><title>", 1)
    html = html.replace("</body>", f"<script>{_PROBE % script}</script></body>", 1)
    copy = page.with_name(f"probe-{width}-{dark}.html")
    copy.write_text(html, encoding="utf-8")
    done = browse(
        page.parent,
        f"--window-size={width},{height}",
        f"--blink-settings=preferredColorScheme={0 if dark else 1}",
        "--virtual-time-budget=5000",
        "--dump-dom",
        copy.as_uri(),
    )
    found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found is not None, done.stdout[-2000:] + done.stderr[-2000:]
    answer = json.loads(found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    assert not answer["wrong"], answer["wrong"]
    return answer["found"]
