"""Shared state in Redis: for agents on several machines. The extra `redis` brings the client.

A write is one Lua script, so that capacity and conditions hold under concurrent writers. The script follows
`plan_write`; a property test holds the two against each other.
"""

import json

import redis.asyncio
from redis.exceptions import RedisError, ResponseError

from agentctl.state.shared_backend import (
    CapacityExceeded,
    ConditionFailed,
    Entry,
    EntryInfo,
    StoreUnreadable,
    Write,
    Written,
    info_after,
    largest_of,
)

# KEYS: values, infos, costs, stashes (scored by version), counters
# ARGV: key, value, max_bytes, how, stash, if_absent, if_version, info without sizes, key bytes, pinned...
_WRITE = """
local key, value, limit = ARGV[1], ARGV[2], tonumber(ARGV[3])
local before = redis.call('HGET', KEYS[2], key)
local version = 0
if before then version = cjson.decode(before).version end
if (ARGV[6] == '1' and before) or (ARGV[7] ~= '' and tonumber(ARGV[7]) ~= version) then
  return {'condition', version}
end
if ARGV[4] == 'append' and before then
  value = redis.call('HGET', KEYS[1], key) .. value
end
local needed = tonumber(ARGV[9]) + #value
local used = tonumber(redis.call('HGET', KEYS[5], 'used') or '0')
if before then used = used - tonumber(redis.call('HGET', KEYS[3], key)) end
local pinned = {}
for index = 10, #ARGV do pinned[ARGV[index]] = true end
local loose, held, spare = {}, {}, 0
for _, name in ipairs(redis.call('ZRANGE', KEYS[4], 0, -1)) do
  if name ~= key then
    spare = spare + tonumber(redis.call('HGET', KEYS[3], name))
    if pinned[name] then table.insert(held, name) else table.insert(loose, name) end
  end
end
if used - spare + needed > limit then
  return {'full', used - spare + needed, #value}
end
for _, name in ipairs(held) do table.insert(loose, name) end
local evicted = {}
for _, name in ipairs(loose) do
  if used + needed <= limit then break end
  used = used - tonumber(redis.call('HGET', KEYS[3], name))
  redis.call('HDEL', KEYS[1], name)
  redis.call('HDEL', KEYS[2], name)
  redis.call('HDEL', KEYS[3], name)
  redis.call('ZREM', KEYS[4], name)
  table.insert(evicted, name)
end
version = redis.call('HINCRBY', KEYS[5], 'version', 1)
local info = cjson.decode(ARGV[8])
info.version = version
info.bytes = #value
redis.call('HSET', KEYS[1], key, value)
redis.call('HSET', KEYS[2], key, cjson.encode(info))
redis.call('HSET', KEYS[3], key, needed)
redis.call('ZREM', KEYS[4], key)
if ARGV[5] == '1' then redis.call('ZADD', KEYS[4], version, key) end
redis.call('HSET', KEYS[5], 'used', used + needed)
return {'ok', version, value, evicted}
"""

_REMOVE = """
local cost = redis.call('HGET', KEYS[3], ARGV[1])
if not cost then return {0} end
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('HDEL', KEYS[2], ARGV[1])
redis.call('HDEL', KEYS[3], ARGV[1])
redis.call('ZREM', KEYS[4], ARGV[1])
redis.call('HINCRBY', KEYS[5], 'used', -tonumber(cost))
return {1}
"""

_READ = "return {redis.call('HGET', KEYS[1], ARGV[1]), redis.call('HGET', KEYS[2], ARGV[1])}"


class RedisBackend:
    """Implements `SharedStateBackend`. Needs asyncio under anyio, as the client does."""

    def __init__(self, url: str, space: str) -> None:
        self._client = redis.asyncio.Redis.from_url(url, decode_responses=False)
        # One hash slot for all keys of a space, so that scripts work on a cluster as well.
        self._keys = [
            f"agentctl:{{{space}}}:{part}" for part in ("values", "infos", "costs", "stashes", "counters")
        ]

    async def get(self, key: str) -> Entry | None:
        """Return an entry, or None when it is absent."""
        value, info = await self._eval(_READ, key)
        if value is None or info is None:
            return None
        return Entry(value=_text(value), info=_info(key, _text(info)))

    async def write(self, write: Write) -> Written:
        """Store a value, recycling stashes where needed."""
        draft = info_after(write, write.value, 0)
        # A table within a table: Lua would write an empty writer as a list.
        fields = {"stash": draft.stash, "writer": {"of": dict(draft.writer)}, "at": draft.at}
        answer = await self._eval(
            _WRITE,
            write.key,
            write.value,
            str(write.max_bytes),
            write.how,
            "1" if write.stash else "0",
            "1" if write.if_absent else "0",
            "" if write.if_version is None else str(write.if_version),
            json.dumps(fields),
            str(len(write.key.encode())),
            *sorted(write.pinned),
        )
        match _text(answer[0]):
            case "condition":
                raise ConditionFailed(write.key, version=_number(answer[1]))
            case "full":
                others = [info for info in await self.entries() if info.key != write.key and not info.stash]
                raise CapacityExceeded(
                    write.key,
                    value_bytes=_number(answer[2]),
                    total_bytes=_number(answer[1]),
                    max_bytes=write.max_bytes,
                    largest=largest_of(others),
                )
            case _:
                info = info_after(write, _text(answer[2]), _number(answer[1]))
                evicted = answer[3] if isinstance(answer[3], list) else []
                return Written(info=info, evicted=tuple(_text(key) for key in evicted))

    async def remove(self, key: str) -> bool:
        """Delete an entry; True if it was there."""
        (removed,) = await self._eval(_REMOVE, key)
        return _number(removed) == 1

    async def entries(self) -> tuple[EntryInfo, ...]:
        """Return all entries without their values."""
        try:
            found = await self._client.hgetall(self._keys[1])
        except (RedisError, OSError) as error:
            raise StoreUnreadable(f"shared state in Redis: {error}") from error
        return tuple(_info(_text(key), _text(info)) for key, info in found.items())

    async def aclose(self) -> None:
        """Close the connections. Idempotent."""
        await self._client.aclose()

    async def _eval(self, script: str, *arguments: str) -> list[object]:
        try:
            return list(await self._client.eval(script, len(self._keys), *self._keys, *arguments))
        except ResponseError as error:
            raise StoreUnreadable(f"shared state in Redis: the script failed: {error}") from error
        except (RedisError, OSError) as error:
            raise StoreUnreadable(f"shared state in Redis: {error}") from error


def _text(value: object) -> str:
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)


def _number(value: object) -> int:
    return int(_text(value))


def _info(key: str, text: str) -> EntryInfo:
    fields = json.loads(text)
    return EntryInfo(
        key=key,
        value_bytes=int(fields["bytes"]),
        version=int(fields["version"]),
        stash=bool(fields["stash"]),
        writer=dict(fields["writer"].get("of", {})) if isinstance(fields["writer"], dict) else {},
        at=str(fields["at"]),
    )
