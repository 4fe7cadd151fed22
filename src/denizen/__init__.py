"""Denizen: a self-hosted runtime for living agents."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from denizen.access.audit import Actor
    from denizen.access.payloads import Greeting
    from denizen.access.requesters import Requester
    from denizen.access.secrets import Secret
    from denizen.access.webhooks import Webhook
    from denizen.agents.definition import AgentChanges, AgentDefinition, AgentSettings
    from denizen.agents.differences import Change as DefinitionChange
    from denizen.agents.files import Declared
    from denizen.agents.fitness import Fitness
    from denizen.agents.inspection import Inspection
    from denizen.agents.pace import Pace
    from denizen.agents.preset_changes import PresetsDocument
    from denizen.agents.registry import Agent
    from denizen.agents.restrictions import HostAccess
    from denizen.agents.space_statuses import QueuedStatus
    from denizen.api.bridges import BridgeReport
    from denizen.api.mcp_servers import SignInServer
    from denizen.api.model_setup import LocalModels, TestResult
    from denizen.app import Runtime
    from denizen.bridges.addresses import BridgeAddress, KnownAddress
    from denizen.bridges.port import BridgeKind
    from denizen.bridges.registry import Bridge, Channel
    from denizen.clock import Clock, ManualClock
    from denizen.consciousness.log import Entry as LogEntry
    from denizen.consciousness.recall.embedding import Progress as ReindexProgress
    from denizen.consciousness.recall.fetching import RecalledPassage
    from denizen.consciousness.replay import RebuiltRequest
    from denizen.consciousness.settings import WindowSettings
    from denizen.cycles.budgets import BudgetRest, BudgetSettings
    from denizen.cycles.records import CycleRecord
    from denizen.cycles.rethinking import NewAnswer
    from denizen.cycles.settings import CycleSettings
    from denizen.cycles.spending import Spending
    from denizen.cycles.steps import NextStep, StepContext
    from denizen.errors import (
        AddressRefused,
        AlreadySettled,
        BridgeUnusable,
        BudgetSpent,
        BusError,
        ChangedMeanwhile,
        ContentRefused,
        DatabaseDamaged,
        DatabaseLocked,
        DatabaseNewer,
        DatabaseReadOnly,
        DatabaseUnavailable,
        DefinitionsInvalid,
        DenizenError,
        DiskFull,
        FileTooLarge,
        HandleTaken,
        IdempotencyKeyReused,
        ImportInvalid,
        InvalidInput,
        IssuerUnreachable,
        LeaseLost,
        ModelAnswerUnusable,
        ModelError,
        ModelKeyMissing,
        ModelKeyRejected,
        ModelOverloaded,
        ModelRejected,
        ModelUnknown,
        ModelUnreachable,
        ModelUnsuitable,
        NotAllowed,
        NotAMember,
        NotFound,
        OutcomeUnknown,
        PortTaken,
        PriceUnknown,
        QuotaExceeded,
        RequestRefused,
        RequestTooLarge,
        ResponsesApiMissing,
        SecretKeyMissing,
        SecretUnreadable,
        ServerError,
        ServerUnreachable,
        SettingsError,
        SignatureExpired,
        SignatureWrong,
        SignInNeeded,
        StepFunctionFailed,
        StorageError,
        SubscriberTooSlow,
        TokenNotBelieved,
        TokenRefused,
        ToolFailed,
        ToolMissing,
        UploadConflict,
    )
    from denizen.files.pictures import DrawnPage, ScaledPicture
    from denizen.files.storing import File, FileLimits
    from denizen.forgetting.receipts import Receipt
    from denizen.ids import AgentId, EntityId, FileId, MessageId, OrganizationId, SpaceId
    from denizen.inbox.events import Event as InboxEvent
    from denizen.inbox.statuses import SpaceStatus
    from denizen.inbox.urgency import UrgentRule
    from denizen.memory.history import MemoryVersion
    from denizen.memory.hygiene import Report as MemoryReport
    from denizen.memory.items import MemoryItem
    from denizen.memory.policy import OrganizationMemory
    from denizen.memory.policy import Policy as MemoryPolicy
    from denizen.memory.rolling import ConversationSummary
    from denizen.memory.searching import FoundMemory
    from denizen.memory.settings import MemoryOptions
    from denizen.models.discovery import ModelChoice
    from denizen.models.embedders import Embedder
    from denizen.models.prices import Price
    from denizen.models.scripted import call, forever, reply, say, scripted, skip, think
    from denizen.panel.advisor_stances import VoiceStance
    from denizen.panel.advisors import Advisor, AdvisorDraft, AdvisorFields
    from denizen.panel.claims import AdvisorContext
    from denizen.panel.costs import CostEstimate
    from denizen.panel.panels import Panel
    from denizen.panel.phases import Phase
    from denizen.panel.rounds import Round
    from denizen.panel.settings import PanelFields
    from denizen.panel.suggesting import Suggestion
    from denizen.panel.unanswered import PanelStatus
    from denizen.plans.agenda import Plan
    from denizen.plans.goals import Goal
    from denizen.plans.notes import Note
    from denizen.plans.settings import HeartbeatSettings
    from denizen.portability.imported import Imported
    from denizen.profiles.settings import ProfileSettings
    from denizen.reflection.settings import Metaprompt, ReflectionSettings
    from denizen.reflection.stance_store import PastRun, PastSignal, Stance
    from denizen.reflection.thinking import MetapromptTrial
    from denizen.spaces.directory import Entity, Member, Organization, Space
    from denizen.spaces.posting import Message, Posted
    from denizen.spaces.reading import ReadPosition
    from denizen.spaces.retention import Retention
    from denizen.spaces.searching import SearchResults
    from denizen.telemetry.telemetry import Telemetry
    from denizen.tools.calls import Call as ToolCall
    from denizen.tools.functions import tool
    from denizen.tools.grants import Grant
    from denizen.tools.privacy_guard import Crossing
    from denizen.tools.results import ToolFile
    from denizen.tools.settings import A2aTool, ClientTool, GuardSettings, HttpTool, McpServer
    from denizen.tools.skills import Skill
    from denizen.tools.tool import OutsideTool
    from denizen.trust.policy import EffectSettings

__version__ = "0.1.0"

__all__ = [
    "A2aTool",
    "Actor",
    "AddressRefused",
    "Advisor",
    "AdvisorContext",
    "AdvisorDraft",
    "AdvisorFields",
    "Agent",
    "AgentChanges",
    "AgentDefinition",
    "AgentId",
    "AgentSettings",
    "AlreadySettled",
    "Bridge",
    "BridgeAddress",
    "BridgeKind",
    "BridgeReport",
    "BridgeUnusable",
    "BudgetRest",
    "BudgetSettings",
    "BudgetSpent",
    "BusError",
    "ChangedMeanwhile",
    "Channel",
    "ClientTool",
    "Clock",
    "ContentRefused",
    "ConversationSummary",
    "CostEstimate",
    "Crossing",
    "CycleRecord",
    "CycleSettings",
    "DatabaseDamaged",
    "DatabaseLocked",
    "DatabaseNewer",
    "DatabaseReadOnly",
    "DatabaseUnavailable",
    "Declared",
    "DefinitionChange",
    "DefinitionsInvalid",
    "DenizenError",
    "DiskFull",
    "DrawnPage",
    "EffectSettings",
    "Embedder",
    "Entity",
    "EntityId",
    "File",
    "FileId",
    "FileLimits",
    "FileTooLarge",
    "Fitness",
    "FoundMemory",
    "Goal",
    "Grant",
    "Greeting",
    "GuardSettings",
    "HandleTaken",
    "HeartbeatSettings",
    "HostAccess",
    "HttpTool",
    "IdempotencyKeyReused",
    "ImportInvalid",
    "Imported",
    "InboxEvent",
    "Inspection",
    "InvalidInput",
    "IssuerUnreachable",
    "KnownAddress",
    "LeaseLost",
    "LocalModels",
    "LogEntry",
    "ManualClock",
    "McpServer",
    "Member",
    "MemoryItem",
    "MemoryOptions",
    "MemoryPolicy",
    "MemoryReport",
    "MemoryVersion",
    "Message",
    "MessageId",
    "Metaprompt",
    "MetapromptTrial",
    "ModelAnswerUnusable",
    "ModelChoice",
    "ModelError",
    "ModelKeyMissing",
    "ModelKeyRejected",
    "ModelOverloaded",
    "ModelRejected",
    "ModelUnknown",
    "ModelUnreachable",
    "ModelUnsuitable",
    "NewAnswer",
    "NextStep",
    "NotAMember",
    "NotAllowed",
    "NotFound",
    "Note",
    "Organization",
    "OrganizationId",
    "OrganizationMemory",
    "OutcomeUnknown",
    "OutsideTool",
    "Pace",
    "Panel",
    "PanelFields",
    "PanelStatus",
    "PastRun",
    "PastSignal",
    "Phase",
    "Plan",
    "PortTaken",
    "Posted",
    "PresetsDocument",
    "Price",
    "PriceUnknown",
    "ProfileSettings",
    "QueuedStatus",
    "QuotaExceeded",
    "ReadPosition",
    "RebuiltRequest",
    "RecalledPassage",
    "Receipt",
    "ReflectionSettings",
    "ReindexProgress",
    "RequestRefused",
    "RequestTooLarge",
    "Requester",
    "ResponsesApiMissing",
    "Retention",
    "Round",
    "Runtime",
    "ScaledPicture",
    "SearchResults",
    "Secret",
    "SecretKeyMissing",
    "SecretUnreadable",
    "ServerError",
    "ServerUnreachable",
    "SettingsError",
    "SignInNeeded",
    "SignInServer",
    "SignatureExpired",
    "SignatureWrong",
    "Skill",
    "Space",
    "SpaceId",
    "SpaceStatus",
    "Spending",
    "Stance",
    "StepContext",
    "StepFunctionFailed",
    "StorageError",
    "SubscriberTooSlow",
    "Suggestion",
    "Telemetry",
    "TestResult",
    "TokenNotBelieved",
    "TokenRefused",
    "ToolCall",
    "ToolFailed",
    "ToolFile",
    "ToolMissing",
    "UploadConflict",
    "UrgentRule",
    "VoiceStance",
    "Webhook",
    "WindowSettings",
    "call",
    "forever",
    "reply",
    "say",
    "scripted",
    "skip",
    "think",
    "tool",
]

_NAMES = {
    "denizen.access.audit": "Actor",
    "denizen.access.payloads": "Greeting",
    "denizen.access.requesters": "Requester",
    "denizen.access.secrets": "Secret",
    "denizen.access.webhooks": "Webhook",
    "denizen.agents.definition": "AgentChanges AgentDefinition AgentSettings",
    "denizen.agents.differences": "Change=DefinitionChange",
    "denizen.agents.files": "Declared",
    "denizen.agents.fitness": "Fitness",
    "denizen.agents.inspection": "Inspection",
    "denizen.agents.pace": "Pace",
    "denizen.agents.preset_changes": "PresetsDocument",
    "denizen.agents.registry": "Agent",
    "denizen.agents.restrictions": "HostAccess",
    "denizen.agents.space_statuses": "QueuedStatus",
    "denizen.api.bridges": "BridgeReport",
    "denizen.api.mcp_servers": "SignInServer",
    "denizen.api.model_setup": "LocalModels TestResult",
    "denizen.app": "Runtime",
    "denizen.bridges.addresses": "BridgeAddress KnownAddress",
    "denizen.bridges.port": "BridgeKind",
    "denizen.bridges.registry": "Bridge Channel",
    "denizen.clock": "Clock ManualClock",
    "denizen.consciousness.log": "Entry=LogEntry",
    "denizen.consciousness.recall.embedding": "Progress=ReindexProgress",
    "denizen.consciousness.recall.fetching": "RecalledPassage",
    "denizen.consciousness.replay": "RebuiltRequest",
    "denizen.consciousness.settings": "WindowSettings",
    "denizen.cycles.budgets": "BudgetRest BudgetSettings",
    "denizen.cycles.records": "CycleRecord",
    "denizen.cycles.rethinking": "NewAnswer",
    "denizen.cycles.settings": "CycleSettings",
    "denizen.cycles.spending": "Spending",
    "denizen.cycles.steps": "NextStep StepContext",
    "denizen.errors": (
        "AddressRefused AlreadySettled BridgeUnusable BudgetSpent BusError ChangedMeanwhile ContentRefused "
        "DatabaseDamaged DatabaseLocked DatabaseNewer DatabaseReadOnly DatabaseUnavailable DefinitionsInvalid "
        "DenizenError DiskFull FileTooLarge HandleTaken IdempotencyKeyReused ImportInvalid InvalidInput "
        "IssuerUnreachable LeaseLost ModelAnswerUnusable ModelError ModelKeyMissing ModelKeyRejected ModelOverloaded "
        "ModelRejected ModelUnknown ModelUnreachable ModelUnsuitable NotAllowed NotAMember NotFound OutcomeUnknown "
        "PortTaken PriceUnknown QuotaExceeded RequestRefused RequestTooLarge ResponsesApiMissing SecretKeyMissing "
        "SecretUnreadable ServerError ServerUnreachable SettingsError SignatureExpired SignatureWrong SignInNeeded "
        "StepFunctionFailed StorageError SubscriberTooSlow TokenNotBelieved TokenRefused ToolFailed ToolMissing "
        "UploadConflict"
    ),
    "denizen.files.pictures": "DrawnPage ScaledPicture",
    "denizen.files.storing": "File FileLimits",
    "denizen.forgetting.receipts": "Receipt",
    "denizen.ids": "AgentId EntityId FileId MessageId OrganizationId SpaceId",
    "denizen.inbox.events": "Event=InboxEvent",
    "denizen.inbox.statuses": "SpaceStatus",
    "denizen.inbox.urgency": "UrgentRule",
    "denizen.memory.history": "MemoryVersion",
    "denizen.memory.hygiene": "Report=MemoryReport",
    "denizen.memory.items": "MemoryItem",
    "denizen.memory.policy": "OrganizationMemory Policy=MemoryPolicy",
    "denizen.memory.rolling": "ConversationSummary",
    "denizen.memory.searching": "FoundMemory",
    "denizen.memory.settings": "MemoryOptions",
    "denizen.models.discovery": "ModelChoice",
    "denizen.models.embedders": "Embedder",
    "denizen.models.prices": "Price",
    "denizen.models.scripted": "call forever reply say scripted skip think",
    "denizen.panel.advisor_stances": "VoiceStance",
    "denizen.panel.advisors": "Advisor AdvisorDraft AdvisorFields",
    "denizen.panel.costs": "CostEstimate",
    "denizen.panel.panels": "Panel",
    "denizen.panel.phases": "Phase",
    "denizen.panel.rounds": "Round",
    "denizen.panel.settings": "PanelFields",
    "denizen.panel.suggesting": "Suggestion",
    "denizen.panel.claims": "AdvisorContext",
    "denizen.panel.unanswered": "PanelStatus",
    "denizen.plans.agenda": "Plan",
    "denizen.plans.goals": "Goal",
    "denizen.plans.notes": "Note",
    "denizen.plans.settings": "HeartbeatSettings",
    "denizen.portability.imported": "Imported",
    "denizen.profiles.settings": "ProfileSettings",
    "denizen.reflection.settings": "Metaprompt ReflectionSettings",
    "denizen.reflection.stance_store": "PastRun PastSignal Stance",
    "denizen.reflection.thinking": "MetapromptTrial",
    "denizen.spaces.directory": "Entity Member Organization Space",
    "denizen.spaces.posting": "Message Posted",
    "denizen.spaces.reading": "ReadPosition",
    "denizen.spaces.retention": "Retention",
    "denizen.spaces.searching": "SearchResults",
    "denizen.telemetry.telemetry": "Telemetry",
    "denizen.tools.calls": "Call=ToolCall",
    "denizen.tools.functions": "tool",
    "denizen.tools.grants": "Grant",
    "denizen.tools.privacy_guard": "Crossing",
    "denizen.tools.results": "ToolFile",
    "denizen.tools.settings": "A2aTool ClientTool GuardSettings HttpTool McpServer",
    "denizen.tools.skills": "Skill",
    "denizen.tools.tool": "OutsideTool",
    "denizen.trust.policy": "EffectSettings",
}
"""The public names by module; `Its=Ours` where the module has another name for it. A module is loaded when one of its
names is first used: `denizen --help` needs no language model.
"""


@cache
def _places() -> dict[str, tuple[str, str]]:
    """The module of each public name, and its name there."""
    found = [(module, *name.partition("=")) for module, names in _NAMES.items() for name in names.split()]
    return {ours or there: (module, there) for module, there, _, ours in found}


def __getattr__(name: str) -> object:
    if name not in _places():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, there = _places()[name]
    value = getattr(import_module(module), there)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
