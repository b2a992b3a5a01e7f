"""The sandbox of each stage: the user's, narrowed by the blueprint and the stage."""

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
    user = _layer(settings.config.sandbox, auto_allow=settings.config.sandbox.auto_allow)
    narrower = [_layer(table) for table in (blueprint.sandbox, stage.sandbox) if table is not None]
    return effective_policy(user, *narrower)


def _layer(table: SandboxTable, *, auto_allow: bool | None = None) -> SandboxLayer:
    return SandboxLayer(
        kind=None if table.kind is None else SandboxKind(table.kind),
        network=table.network,
        read=table.read,
        write=table.write,
        hide=table.hide,
        on_unavailable=None if table.on_unavailable is None else OnUnavailable(table.on_unavailable),
        auto_allow=auto_allow,
    )
