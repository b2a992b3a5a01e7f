"""What a login at a server left behind: tokens, in a file that only this user can read."""

import hashlib
import json
import os
import tempfile
from dataclasses import field
from pathlib import Path
from typing import Protocol

from agentctl.locations import data_dir
from agentctl.protocol.values import JsonObject
from agentctl.records import dataclass


class LoginDoor(Protocol):
    """Where a person logs in: shows an address, and waits for the browser to come back."""

    @property
    def redirect_uri(self) -> str:
        """Where the browser is sent back to: an address of this machine."""

    async def open(self, address: str) -> None:
        """Show the address at which the person logs in."""

    async def came_back(self) -> str:
        """Return the query of the address that the browser came back with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginFile:
    """The login at one server. All methods may block."""

    url: str
    folder: Path = field(default_factory=lambda: data_dir() / "mcp-logins")

    @property
    def path(self) -> Path:
        """The file; it need not exist."""
        return self.folder / f"{hashlib.sha256(self.url.encode()).hexdigest()[:24]}.json"

    def read(self) -> JsonObject:
        """Return what is known; empty where nothing is, or the file is broken: a new login mends it."""
        try:
            found = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def write(self, known: JsonObject) -> None:
        """Replace what is known; atomic, and never readable by others."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # SAFETY: a name of our own making in a folder of our own; mkstemp makes it with mode 0600.
        handle, name = tempfile.mkstemp(dir=self.folder)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"url": self.url, **known}, file)
        Path(name).replace(self.path)

    def forget(self) -> bool:
        """Remove it; return whether there was one."""
        existed = self.path.exists()
        self.path.unlink(missing_ok=True)
        return existed
