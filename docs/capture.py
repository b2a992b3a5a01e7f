"""Makes `docs/capture.txt`, the screen in the README, by driving a real terminal: `python docs/capture.py`.

A pseudo-terminal, a screen emulator, the shipped `scout` with its script, and one key pressed at the prompt.
With `--check` it compares instead and exits with 1 where the file or the README is out of date.
"""

import os
import re
import sys
import tempfile
import time
from pathlib import Path

import pexpect
import pyte

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
COLUMNS, ROWS = 200, 40
"""Wide, so that the length of this checkout's own path breaks no line."""
COMMAND = ["run", "scout", "Which variable moves the data?", "--model", "scripted:"]
BEGIN, END = "<!-- capture: docs/capture.py -->\n```text\n", "```\n<!-- /capture -->"


def capture() -> str:
    """Return what the screen shows at the end, with the machine's own names replaced."""
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.ByteStream(screen)
    with tempfile.TemporaryDirectory() as home:
        environ = {**os.environ, "AGENTCTL_HOME": home, "TERM": "xterm-256color", "NO_COLOR": "1"}
        environ["PYTHONPATH"] = str(ROOT)
        arguments = ["-m", "agentctl", *COMMAND]
        child = pexpect.spawn(
            sys.executable, arguments, env=environ, dimensions=(ROWS, COLUMNS), cwd=str(ROOT), timeout=30
        )
        answered = False
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                stream.feed(child.read_nonblocking(65536, 0.2))
            except pexpect.TIMEOUT:
                pass
            except pexpect.EOF:
                break
            if not answered and any(line.startswith("[n] >") for line in screen.display):
                child.send("y")
                answered = True
        child.close()
    shown = "\n".join(line.rstrip() for line in screen.display).rstrip() + "\n"
    shown = shown.replace(str(ROOT), "~/agentctl")
    shown = re.sub(r"r-[0-9a-z]{16}", "r-1m8p4fwt6a9se3mw", shown)
    shown = re.sub(r"· \d+\.\d s", "· 0.0 s", shown)
    shown = re.sub(r"[\d,]+ tokens", "3,400 tokens", shown)
    return f"$ agentctl run scout {COMMAND[2]!r} --model scripted:\n{shown}"


def readme_with(shown: str) -> str:
    """Return the README with the capture in its place."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}{shown}{END}{tail}"


def main() -> int:
    """Write the capture, or compare."""
    shown = capture()
    if "--check" in sys.argv:
        same = (HERE / "capture.txt").read_text(encoding="utf-8") == shown
        return 0 if same and (ROOT / "README.md").read_text(encoding="utf-8") == readme_with(shown) else 1
    (HERE / "capture.txt").write_text(shown, encoding="utf-8")
    (ROOT / "README.md").write_text(readme_with(shown), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
