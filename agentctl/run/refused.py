"""The asks of a run that were refused for lack of a person, as its last words tell them."""

from agentctl.interaction.unattended import RefusedAsk
from agentctl.run.recorder import RunRecorder


def refused_of(recorder: RunRecorder) -> tuple[RefusedAsk, ...]:
    """Return the refused asks of a run, in their order."""
    return tuple(
        RefusedAsk(tool=ask.tool, shown=ask.preview, allow=ask.flags, instead=ask.instead)
        for ask in recorder.snapshot.refused_asks
    )
