"""How times and run lines stand in the tables."""

from datetime import UTC, datetime, timedelta

from agentctl.journal.body import from_json, to_json
from agentctl.journal.store import RunInfo
from agentctl.protocol.codec import decode, encode

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def microseconds_of(moment: datetime) -> int:
    """Return a time as microseconds since 1970, UTC."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def text_of(microseconds: int) -> str:
    """Return stored microseconds as RFC 3339, UTC, to the millisecond."""
    moment = _EPOCH + timedelta(microseconds=microseconds)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def info_to_text(info: RunInfo) -> str:
    """Return what of a run's line is not in a column of its own, as JSON."""
    return to_json(encode(info))


def info_from_text(text: str, empty: RunInfo) -> RunInfo:
    """Return the run's line of `text`, or `empty` where nothing was stored yet."""
    if text == "{}":
        return empty
    info: RunInfo = decode(RunInfo, from_json(text))
    return info
