"""The sandbox of each stage: the user's, narrowed by the blueprint and the stage."""

from collections.abc import Iterable
from dataclasses import replace

from agentctl.blueprint.model import Blueprint, StageTable
from agentctl.executor.sandbox_policy import (
    OnUnavailable,
    SandboxKind,
    SandboxLayer,
    SandboxPolicy,
    effective_policy,
)
from agentctl.settings.settings import Settings
from agentctl.tables.declared import SandboxTable


def sandbox_of(settings: Settings, blueprint: Blueprint, stage: StageTable) -> SandboxPolicy:
    """Return what holds for the processes of a stage. Pure."""
    return sandbox_of_all(settings, blueprint, [stage])


def sandbox_of_all(
    settings: Settings, blueprint: Blueprint | None, stages: Iterable[StageTable]
) -> SandboxPolicy:
    """Return what holds for a process that outlives a stage: what is allowed in each of them. Pure."""
    table = settings.config.sandbox
    user = replace(_layer(table), auto_allow=table.auto_allow, unix_sockets=table.unix_sockets)
    own = blueprint.sandbox if blueprint is not None else None
    tables = (own, *(stage.sandbox for stage in stages))
    return effective_policy(user, *(_layer(table) for table in tables if table is not None))


def _layer(table: SandboxTable) -> SandboxLayer:
    return SandboxLayer(
        kind=None if table.kind is None else SandboxKind(table.kind),
        network=table.network,
        read=table.read,
        write=table.write,
        hide=table.hide,
        on_unavailable=None if table.on_unavailable is None else OnUnavailable(table.on_unavailable),
    )
