"""The two tools that end a stage, built for each stage from its open edges and its output schema.

The loop interprets their structured results: `{"to": STAGE, "note": TEXT}` of `transition`, and the answer
itself of `submit_output`.
"""

from collections.abc import Mapping

from agentctl.protocol.messages import ToolSpec
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.tools.definition import ActContext, Prepared, Tool, ToolOutput, ToolPlace
from agentctl.tools.typed import BuiltInTool

TRANSITION = "transition"
SUBMIT_OUTPUT = "submit_output"


def transition_tool(edges: Mapping[str, str]) -> Tool:
    """Return `transition`, a choice of the open edges. Without effects.

    `edges` is never empty and maps the stage an edge leads to onto the hint that the model reads, or "".
    """
    hints = "; ".join(f"{name}: {hint}" for name, hint in edges.items() if hint)
    to: JsonObject = {"type": "string", "enum": list(edges)}
    note: JsonObject = {"type": "string", "description": "What the next stage should know."}
    spec = ToolSpec(
        name=TRANSITION,
        description="End this stage and go to the next. Call it alone, when this stage's work is done.",
        parameters={
            "type": "object",
            "properties": {"to": {**to, "description": hints} if hints else to, "note": note},
            "required": ["to"],
            "additionalProperties": False,
        },
    )

    async def plan(arguments: JsonObject, place: ToolPlace) -> Prepared:
        del place
        result: JsonObject = {"to": arguments["to"], "note": arguments.get("note") or ""}
        return _without_effects(f"go to stage {result['to']}", f"Going to stage {result['to']}.", result)

    return BuiltInTool(spec=spec, plan=plan)


def submit_output_tool(schema: JsonObject) -> Tool:
    """Return `submit_output`, which takes the stage's structured answer.

    `schema` is the stage's `[stages.NAME.output]`. Where it is not of type object, the answer is the member
    `output` of the call's arguments.
    """
    whole = schema.get("type") == "object"
    spec = ToolSpec(
        name=SUBMIT_OUTPUT,
        description="Hand in the result of this stage. Call it once, when the work is done.",
        parameters=schema if whole else _wrapped(schema),
    )

    async def plan(arguments: JsonObject, place: ToolPlace) -> Prepared:
        del place
        output: JsonValue = arguments if whole else arguments["output"]
        return _without_effects("hand in the result", "The result was handed in.", output)

    return BuiltInTool(spec=spec, plan=plan)


def _without_effects(preview: str, text: str, structured: JsonValue) -> Prepared:
    async def act(context: ActContext) -> ToolOutput:
        del context
        return ToolOutput(text=text, structured=structured)

    return Prepared(effects=(), act=act, preview=preview, read_only=True)


def _wrapped(schema: JsonObject) -> JsonObject:
    shared = ("$defs", "definitions")
    wrapped: JsonObject = {
        "type": "object",
        "properties": {"output": {name: value for name, value in schema.items() if name not in shared}},
        "required": ["output"],
        "additionalProperties": False,
    }
    for name in shared:
        if name in schema:
            wrapped[name] = schema[name]
    return wrapped
