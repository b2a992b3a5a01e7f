"""What a server answers, as the model can take it: text, images by reference, and JSON. Pure, total."""

import base64
import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    GetPromptResult,
    ImageContent,
    ReadResourceResult,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from agentctl.protocol.messages import ImagePart
from agentctl.protocol.values import JsonValue
from agentctl.tools.definition import ToolOutput
from agentctl.tools.mcp.wire.mending import STRUCTURED
from agentctl.tools.mcp.wire.plain import TooDeep, plain

MOST_TEXT = 8 << 20
"""Characters of one answer that are kept at all; what the model sees of it is cut further by the agent."""
MOST_IMAGES = 16
LARGEST_IMAGE = 8 << 20
"""Characters of base64."""
_BEGINNINGS = {
    "image/png": b"\x89PNG",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}


@dataclass(slots=True)
class _Gathered:
    texts: list[str] = field(default_factory=list)
    images: list[ImagePart] = field(default_factory=list)

    def image(self, media_type: str, data: str, name: str = "") -> None:
        """Keep an image, or say why it is not kept."""
        what = f"{name} " if name else ""
        if media_type not in _BEGINNINGS:
            self.texts.append(f"[{what}{media_type or 'data'}, {_bytes(data)} bytes, not shown]")
        elif len(data) > LARGEST_IMAGE or len(self.images) >= MOST_IMAGES:
            self.texts.append(f"[{what}{media_type}, {_bytes(data)} bytes, too much to show]")
        elif (kind := _kind(media_type, data)) is None:
            self.texts.append(f"[{what}{media_type}, not shown: its data is no base64]")
        else:
            self.images.append(ImagePart(media_type=kind, data=data, name=name))

    def output(self, structured: JsonValue, *, failed: bool) -> ToolOutput:
        """Return all of it; without any text the JSON stands for it."""
        text = "\n".join(self.texts)
        if not text and structured is not None:
            text = json.dumps(structured, indent=2, ensure_ascii=False)
        if not text:
            text = f"[{len(self.images)} images]" if self.images else "(no output)"
        if len(text) > MOST_TEXT:
            text = f"{text[:MOST_TEXT]}\n[cut: the server sent {len(text)} characters]"
        return ToolOutput(text=text, structured=structured, images=tuple(self.images), failed=failed)


def call_output(result: CallToolResult) -> ToolOutput:
    """Return a tool's answer; the structured part and every image come along whatever else there is."""
    gathered = _Gathered()
    _gather(gathered, result.content)
    aside = (result.meta or {}).get(STRUCTURED)
    structured: JsonValue = None
    try:
        structured = plain(result.structured_content if result.structured_content is not None else aside)
    except TooDeep as error:
        gathered.texts.append(f"[the structured part is left out: it is {error}]")
    return gathered.output(structured, failed=result.is_error)


def resource_output(result: ReadResourceResult) -> ToolOutput:
    """Return what a resource holds."""
    gathered = _Gathered()
    for one in result.contents:
        _resource(gathered, one)
    return gathered.output(None, failed=False)


def prompt_output(result: GetPromptResult) -> ToolOutput:
    """Return a filled-in prompt: its messages in order, each under its role."""
    gathered = _Gathered()
    for message in result.messages:
        gathered.texts.append(f"[{message.role}]")
        _gather(gathered, [message.content])
    return gathered.output(None, failed=False)


def listing(rows: list[dict[str, JsonValue]], empty: str) -> ToolOutput:
    """Return a list of things as lines and as JSON; members without a value are left out."""
    kept: list[JsonValue] = [{key: value for key, value in row.items() if value} for row in rows]
    text = "\n".join(json.dumps(row, ensure_ascii=False) for row in kept)
    return ToolOutput(text=text or empty, structured=kept)


def _gather(gathered: _Gathered, blocks: Iterable[ContentBlock]) -> None:
    for block in blocks:
        match block:
            case TextContent(text=text):
                gathered.texts.append(text)
            case ImageContent(mime_type=media_type, data=data):
                gathered.image(media_type, data)
            case AudioContent(mime_type=media_type, data=data):
                gathered.texts.append(f"[{media_type}, {_bytes(data)} bytes, not shown]")
            case ResourceLink(name=name, uri=uri, description=description):
                more = f": {description}" if description else ""
                gathered.texts.append(f"[resource {name} at {uri}{more}]")
            case EmbeddedResource(resource=resource):
                _resource(gathered, resource)


def _resource(gathered: _Gathered, resource: TextResourceContents | BlobResourceContents) -> None:
    match resource:
        case TextResourceContents(uri=uri, text=text):
            gathered.texts.append(f"[{uri}]\n{text}")
        case BlobResourceContents(uri=uri, mime_type=media_type, blob=blob):
            gathered.image(media_type or "", blob, uri)


def _bytes(data: str) -> int:
    return len(data) * 3 // 4


def _kind(media_type: str, data: str) -> str | None:
    """Return which kind of image base64 text is, by its first bytes where they tell; None for no base64.

    A model service refuses a whole conversation for an image that is not of the kind it is said to be.
    """
    try:
        begins = base64.b64decode(data, validate=True)[:12]
    except ValueError:
        return None
    return next((kind for kind, magic in _BEGINNINGS.items() if begins.startswith(magic)), media_type)
