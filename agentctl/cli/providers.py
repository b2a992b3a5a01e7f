"""From the user's config and a blueprint to what opening a model depends on."""

import os
from dataclasses import replace
from pathlib import Path

from agentctl.blueprint.model import Blueprint
from agentctl.cli.keyring import stored_key
from agentctl.clock import Clock
from agentctl.llm.base import LanguageModel
from agentctl.llm.provider_config import ProviderConfig, ProviderSettings, RetryPolicy
from agentctl.llm.script import Script, load_script, script_from_table
from agentctl.settings.model import ProviderTable
from agentctl.settings.settings import Settings


def provider_config(settings: Settings, blueprint: Blueprint, clock: Clock) -> ProviderConfig:
    """Return the model services of one process. May read the blueprint's script file."""
    return replace(
        service_config(settings),
        script=blueprint_script(blueprint),
        script_dir=blueprint.source.path.parent,
        openers={"local": _open_local},
        clock=clock,
    )


def service_config(settings: Settings) -> ProviderConfig:
    """Return what the user's config and the environment say about model services."""
    network = settings.config.network
    retry = RetryPolicy()
    return ProviderConfig(
        environment=dict(os.environ),
        providers={name: _provider(table) for name, table in settings.config.providers.items()},
        models=settings.config.models,
        key_store=stored_key,
        retry=RetryPolicy(
            attempts=network.attempts or retry.attempts, max_wait_s=network.max_wait or retry.max_wait_s
        ),
        proxy=network.proxy,
        ca_file=Path(network.ca_file) if network.ca_file else None,
    )


def blueprint_script(blueprint: Blueprint) -> Script | None:
    """Return the blueprint's own script: `[script]`, or `NAME.script.toml` beside it; None without one."""
    source = blueprint.source
    if blueprint.script is not None and blueprint.script.replies:
        replies = source.table.table("script").values.get("replies", [])
        count = len(replies) if isinstance(replies, list) else 0
        lines = [source.table.position("script", "replies", index).line for index in range(count)]
        return script_from_table({"replies": replies}, source=str(source.path), lines=lines)
    if blueprint.script is not None and blueprint.script.file:
        return load_script(source.path.parent / blueprint.script.file)
    beside = source.path.with_name(f"{source.path.stem}.script.toml")
    return load_script(beside) if beside.is_file() else None


def _open_local(name: str) -> LanguageModel:
    """Open an embedded model; the module is loaded by those alone who use one."""
    from agentctl.llm.local import open_local  # noqa: PLC0415

    return open_local(name)


def _provider(table: ProviderTable) -> ProviderSettings:
    return ProviderSettings(
        protocol=table.protocol,
        base_url=table.base_url,
        origin="user",
        key_env=table.key_env,
        headers=table.headers,
        query=table.query,
        dialect=table.dialect,
        stream=table.stream,
        max_concurrency=table.max_concurrency,
        requests_per_minute=table.requests_per_minute,
        stall_timeout_s=table.stall_timeout,
        connect_timeout_s=table.connect_timeout,
    )


def local_obstacle(name: str) -> str:
    """Return why `local:NAME` cannot be had here, or empty; loaded by those alone who would use one."""
    from agentctl.llm.local_catalogue import obstacle_to  # noqa: PLC0415

    return obstacle_to(name)
