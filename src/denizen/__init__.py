"""Denizen: a self-hosted runtime for living agents."""

from __future__ import annotations

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
    from denizen.api.model_setup import LocalModels, TestResult
    from denizen.app import Runtime
    from denizen.bridges.addresses import BridgeAddress
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
        ContentRefused,
        DatabaseDamaged,
        DatabaseLocked,
        DatabaseNewer,
        DatabaseReadOnly,
        DatabaseUnavailable,
        DefinitionsInvalid,
        DenizenError,
        DiskFull,
        HandleTaken,
        IdempotencyKeyReused,
        ImportInvalid,
        InvalidInput,
        IssuerUnreachable,
        LeaseLost,
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
        SecretKeyMissing,
        SecretUnreadable,
        ServerError,
        ServerUnreachable,
        SettingsError,
        SignatureExpired,
        SignatureWrong,
        StepFunctionFailed,
        StorageError,
        SubscriberTooSlow,
        TokenNotBelieved,
        TokenRefused,
        ToolFailed,
        ToolMissing,
        UploadConflict,
    )
    from denizen.files.pictures import ScaledPicture
    from denizen.files.storing import File, FileLimits
    from denizen.forgetting.forgetting import Receipt
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
    from denizen.models.discovery import Choice as ModelChoice
    from denizen.models.embedders import Embedder
    from denizen.models.prices import Price
    from denizen.models.scripted import call, forever, reply, say, scripted, skip, think
    from denizen.panel.advisor_stances import VoiceStance
    from denizen.panel.advisors import Advisor, AdvisorDraft, AdvisorFields
    from denizen.panel.costs import CostEstimate
    from denizen.panel.panels import Panel
    from denizen.panel.phases import Phase
    from denizen.panel.rounds import Round
    from denizen.panel.settings import PanelFields
    from denizen.panel.suggesting import Suggestion
    from denizen.panel.taking import AdvisorContext
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
    "EffectSettings",
    "Embedder",
    "Entity",
    "EntityId",
    "File",
    "FileId",
    "FileLimits",
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

_PLACES = {
    "Actor": "denizen.access.audit",
    "AddressRefused": "denizen.errors",
    "A2aTool": "denizen.tools.settings",
    "Advisor": "denizen.panel.advisors",
    "AdvisorContext": "denizen.panel.taking",
    "AdvisorDraft": "denizen.panel.advisors",
    "AdvisorFields": "denizen.panel.advisors",
    "Agent": "denizen.agents.registry",
    "AgentChanges": "denizen.agents.definition",
    "AgentDefinition": "denizen.agents.definition",
    "AgentId": "denizen.ids",
    "AgentSettings": "denizen.agents.definition",
    "AlreadySettled": "denizen.errors",
    "Bridge": "denizen.bridges.registry",
    "BridgeAddress": "denizen.bridges.addresses",
    "BridgeKind": "denizen.bridges.port",
    "BridgeReport": "denizen.api.bridges",
    "BridgeUnusable": "denizen.errors",
    "BudgetRest": "denizen.cycles.budgets",
    "BudgetSettings": "denizen.cycles.budgets",
    "BudgetSpent": "denizen.errors",
    "BusError": "denizen.errors",
    "Channel": "denizen.bridges.registry",
    "ClientTool": "denizen.tools.settings",
    "Clock": "denizen.clock",
    "ContentRefused": "denizen.errors",
    "ConversationSummary": "denizen.memory.rolling",
    "CostEstimate": "denizen.panel.costs",
    "Crossing": "denizen.tools.privacy_guard",
    "CycleRecord": "denizen.cycles.records",
    "CycleSettings": "denizen.cycles.settings",
    "DatabaseDamaged": "denizen.errors",
    "DatabaseLocked": "denizen.errors",
    "DatabaseNewer": "denizen.errors",
    "DatabaseReadOnly": "denizen.errors",
    "DatabaseUnavailable": "denizen.errors",
    "Declared": "denizen.agents.files",
    "DefinitionChange": "denizen.agents.differences:Change",
    "DefinitionsInvalid": "denizen.errors",
    "DenizenError": "denizen.errors",
    "DiskFull": "denizen.errors",
    "EffectSettings": "denizen.trust.policy",
    "Embedder": "denizen.models.embedders",
    "Entity": "denizen.spaces.directory",
    "EntityId": "denizen.ids",
    "File": "denizen.files.storing",
    "FileId": "denizen.ids",
    "FileLimits": "denizen.files.storing",
    "Fitness": "denizen.agents.fitness",
    "FoundMemory": "denizen.memory.searching",
    "Goal": "denizen.plans.goals",
    "Grant": "denizen.tools.grants",
    "Greeting": "denizen.access.payloads",
    "GuardSettings": "denizen.tools.settings",
    "HandleTaken": "denizen.errors",
    "HeartbeatSettings": "denizen.plans.settings",
    "HostAccess": "denizen.agents.restrictions",
    "HttpTool": "denizen.tools.settings",
    "IdempotencyKeyReused": "denizen.errors",
    "ImportInvalid": "denizen.errors",
    "Imported": "denizen.portability.imported",
    "InboxEvent": "denizen.inbox.events:Event",
    "Inspection": "denizen.agents.inspection",
    "InvalidInput": "denizen.errors",
    "IssuerUnreachable": "denizen.errors",
    "LeaseLost": "denizen.errors",
    "LocalModels": "denizen.api.model_setup",
    "LogEntry": "denizen.consciousness.log:Entry",
    "ManualClock": "denizen.clock",
    "McpServer": "denizen.tools.settings",
    "Member": "denizen.spaces.directory",
    "MemoryItem": "denizen.memory.items",
    "MemoryOptions": "denizen.memory.settings",
    "MemoryPolicy": "denizen.memory.policy:Policy",
    "MemoryReport": "denizen.memory.hygiene:Report",
    "MemoryVersion": "denizen.memory.history",
    "Message": "denizen.spaces.posting",
    "MessageId": "denizen.ids",
    "Metaprompt": "denizen.reflection.settings",
    "MetapromptTrial": "denizen.reflection.thinking",
    "ModelChoice": "denizen.models.discovery:Choice",
    "ModelError": "denizen.errors",
    "ModelKeyMissing": "denizen.errors",
    "ModelKeyRejected": "denizen.errors",
    "ModelOverloaded": "denizen.errors",
    "ModelRejected": "denizen.errors",
    "ModelUnknown": "denizen.errors",
    "ModelUnreachable": "denizen.errors",
    "ModelUnsuitable": "denizen.errors",
    "NewAnswer": "denizen.cycles.rethinking",
    "NextStep": "denizen.cycles.steps",
    "NotAMember": "denizen.errors",
    "NotAllowed": "denizen.errors",
    "NotFound": "denizen.errors",
    "Note": "denizen.plans.notes",
    "Organization": "denizen.spaces.directory",
    "OrganizationId": "denizen.ids",
    "OrganizationMemory": "denizen.memory.policy",
    "OutcomeUnknown": "denizen.errors",
    "OutsideTool": "denizen.tools.tool",
    "Pace": "denizen.agents.pace",
    "Panel": "denizen.panel.panels",
    "PanelFields": "denizen.panel.settings",
    "PanelStatus": "denizen.panel.unanswered",
    "PastRun": "denizen.reflection.stance_store",
    "PastSignal": "denizen.reflection.stance_store",
    "Phase": "denizen.panel.phases",
    "Plan": "denizen.plans.agenda",
    "PortTaken": "denizen.errors",
    "Posted": "denizen.spaces.posting",
    "PresetsDocument": "denizen.agents.preset_changes",
    "Price": "denizen.models.prices",
    "PriceUnknown": "denizen.errors",
    "ProfileSettings": "denizen.profiles.settings",
    "QueuedStatus": "denizen.agents.space_statuses",
    "QuotaExceeded": "denizen.errors",
    "ReadPosition": "denizen.spaces.reading",
    "RebuiltRequest": "denizen.consciousness.replay",
    "RecalledPassage": "denizen.consciousness.recall.fetching",
    "Receipt": "denizen.forgetting.forgetting",
    "ReflectionSettings": "denizen.reflection.settings",
    "ReindexProgress": "denizen.consciousness.recall.embedding:Progress",
    "RequestRefused": "denizen.errors",
    "RequestTooLarge": "denizen.errors",
    "Requester": "denizen.access.requesters",
    "Retention": "denizen.spaces.retention",
    "Round": "denizen.panel.rounds",
    "Runtime": "denizen.app",
    "SearchResults": "denizen.spaces.searching",
    "ScaledPicture": "denizen.files.pictures",
    "Secret": "denizen.access.secrets",
    "SecretKeyMissing": "denizen.errors",
    "SecretUnreadable": "denizen.errors",
    "ServerError": "denizen.errors",
    "ServerUnreachable": "denizen.errors",
    "SettingsError": "denizen.errors",
    "SignatureExpired": "denizen.errors",
    "SignatureWrong": "denizen.errors",
    "Skill": "denizen.tools.skills",
    "Space": "denizen.spaces.directory",
    "SpaceId": "denizen.ids",
    "SpaceStatus": "denizen.inbox.statuses",
    "Spending": "denizen.cycles.spending",
    "Stance": "denizen.reflection.stance_store",
    "StepContext": "denizen.cycles.steps",
    "StepFunctionFailed": "denizen.errors",
    "StorageError": "denizen.errors",
    "SubscriberTooSlow": "denizen.errors",
    "Suggestion": "denizen.panel.suggesting",
    "Telemetry": "denizen.telemetry.telemetry",
    "TestResult": "denizen.api.model_setup",
    "TokenNotBelieved": "denizen.errors",
    "TokenRefused": "denizen.errors",
    "ToolCall": "denizen.tools.calls:Call",
    "ToolFile": "denizen.tools.results",
    "ToolFailed": "denizen.errors",
    "ToolMissing": "denizen.errors",
    "UploadConflict": "denizen.errors",
    "UrgentRule": "denizen.inbox.urgency",
    "VoiceStance": "denizen.panel.advisor_stances",
    "Webhook": "denizen.access.webhooks",
    "WindowSettings": "denizen.consciousness.settings",
    "call": "denizen.models.scripted",
    "forever": "denizen.models.scripted",
    "reply": "denizen.models.scripted",
    "say": "denizen.models.scripted",
    "scripted": "denizen.models.scripted",
    "skip": "denizen.models.scripted",
    "think": "denizen.models.scripted",
    "tool": "denizen.tools.functions",
}
"""The module of each public name, and its name there if it differs. Loaded when first used: `denizen --help` needs no
language model.
"""


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, there = _PLACES[name].partition(":")
    value = getattr(import_module(module), there or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
