"""Say in one sentence why a call was allowed, must ask, or is denied."""

from agentctl.policy.patterns import quote_words
from agentctl.protocol.decisions import Judgement, LayerName, Verdict
from agentctl.protocol.effects import (
    Effect,
    OpaqueCommand,
    ReachHost,
    ReadPath,
    RunProgram,
    SpawnAgent,
    WritePath,
)

LAYER_WORDS: dict[LayerName, str] = {
    "launch": "the command line",
    "stage": "the stage",
    "blueprint": "the blueprint",
    "user-for-agent": "your config for this agent",
    "user": "your config",
    "built-in": "the built-in policy",
    "parent": "the run that started this one",
    "machine": "a machine of the blueprint",
}


def reason_for(tool: str, judgement: Judgement) -> str:
    """Return the sentence for the judgement that decided a call of `tool`."""
    if judgement.layer == "machine" and judgement.says:
        return judgement.says[0].note
    what = describe(tool, judgement.effect)
    match judgement.verdict:
        case Verdict.DENY:
            return f"{what} is denied by {_source(judgement)}."
        case Verdict.ASK:
            return _why_ask(what, judgement)
        case Verdict.ALLOW:
            return f"{what} is allowed{_by(judgement)}."


def describe(tool: str, effect: Effect | None) -> str:
    """Return what an effect is, in a person's words; the whole command, never a part of it."""
    match effect:
        case None:
            return f"`{tool}`"
        case RunProgram(argv=argv):
            return f"Running `{quote_words(argv)}`"
        case WritePath(path=path):
            return f"Writing {path}"
        case ReadPath(path=path):
            return f"Reading {path}"
        case ReachHost(host=host):
            return f"Reaching {host}"
        case SpawnAgent(agent=agent):
            return f"Starting the agent {agent}"
        case OpaqueCommand():
            return "The command line"


def _source(judgement: Judgement) -> str:
    where = f", {judgement.position}" if judgement.position.line else ""
    return f"the rule {judgement.rule} ({LAYER_WORDS[judgement.layer]}{where})"


def _by(judgement: Judgement) -> str:
    match judgement.lift:
        case "safe-list":
            return f": it is on the safe list ({judgement.lifted_by})"
        case "grant":
            return f": you granted {judgement.lifted_by}"
        case "remembered":
            return f": you always allow {judgement.lifted_by}"
        case "sandbox":
            return ": it runs in the sandbox"
        case "answer":
            return ": you said so, this once"
        case "":
            return f" by {_source(judgement)}" if judgement.rule else ""


def _why_ask(what: str, judgement: Judgement) -> str:
    match judgement.effect, judgement.held:
        case WritePath(protected=why), "protected":
            return f"{what} needs your word each time: {why}."
        case OpaqueCommand(reason=why), _:
            return f"{what} cannot be told before it runs: {why}."
        case _, "outside":
            return f"{what} needs your word: it lies outside the workdir."
        case _:
            pass
    if judgement.layer == "built-in":
        for say in judgement.says:
            if say.layer in {"stage", "blueprint"} and say.verdict is Verdict.ALLOW:
                author = LAYER_WORDS[say.layer]
                return f"{what} needs your word: {author} allows it, your config does not say so."
        return f"{what} needs your word: no rule allows it."
    return f"{what} needs your word by {_source(judgement)}."
