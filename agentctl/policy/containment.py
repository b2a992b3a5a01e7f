"""What no rule decides: where files may be touched at all. Holds in every mode, under `--yolo` too."""

from collections.abc import Sequence

from agentctl.policy.paths import contains
from agentctl.protocol.effects import Effect, ReadPath, WritePath


def refused_place(tool: str, effects: Sequence[Effect], roots: Sequence[str]) -> str:
    """Return why a call may not touch what it would touch, for the model, or empty. Pure.

    `roots` are the workdir and what counts as it, absolute and resolved; the workdir comes first. What a
    shell line reads outside is not refused here: that is a held ask.
    """
    for effect in effects:
        match effect:
            case WritePath(path=path, unresolved=False):
                if not any(contains(root, path) for root in roots):
                    return f"Refused: {path} is outside the working directory {roots[0]}."
            case ReadPath(path=path, outside=True):
                if tool != "shell":
                    return (
                        f"Refused: {path} is outside the working directory {roots[0]}. "
                        "[read_paths] in the blueprint and in the user's config would grant it."
                    )
            case _:
                continue
    return ""
