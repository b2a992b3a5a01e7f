"""The hashes of blueprints' code that the user trusted, in `trusted.json` of the data directory."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from agentctl.errors import StateConflict
from agentctl.locations import data_dir
from agentctl.settings.files import locked, replace_file


@dataclass(frozen=True, slots=True)
class TrustStore:
    """Reads the file at each question, so that an answer in another terminal counts at once."""

    file: Path = field(default_factory=lambda: data_dir() / "trusted.json")

    def is_trusted(self, sha256: str) -> bool:
        """Tell whether the user trusted this hash. May block."""
        return sha256 in self._read()

    def add(self, sha256: str, *, blueprint: Path) -> None:
        """Trust a hash for good; `blueprint` is written down for people. Idempotent, atomic; may block.

        Raises:
            UsageError: the file can't be written.
            StateConflict: it is broken, or another process keeps it locked.
        """
        with locked(self.file):
            entries = dict(self._read())
            if sha256 in entries:
                return
            entries[sha256] = {
                "blueprint": str(blueprint),
                "added": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            }
            replace_file(self.file, json.dumps(entries, indent=2, ensure_ascii=False) + "\n")

    def _read(self) -> Mapping[str, object]:
        try:
            entries = json.loads(self.file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise _broken(self.file, str(error)) from None
        if not isinstance(entries, dict):
            raise _broken(self.file, "it holds no object")
        return entries


def _broken(file: Path, why: str) -> StateConflict:
    return StateConflict(
        f"The list of trusted code {str(file)!r} can't be read: {why}.",
        hint="move it away to begin a new one; what it listed must be trusted again",
    )
