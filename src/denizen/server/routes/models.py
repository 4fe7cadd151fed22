"""Lists the models that agents can use; operators test models and choose the default."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Annotated, Literal

from fastapi import Query

from denizen.access import secrets
from denizen.access.operators import is_operator
from denizen.api.model_setup import NOT_AN_OPERATOR
from denizen.app import Runtime
from denizen.models import catalog
from denizen.models.providers import USUAL_MODELS, ModelProvider, providers
from denizen.server.auth import Caller, Owner, Person
from denizen.server.problems import Problem
from denizen.server.router import new_router
from denizen.server.shapes.models import ChooseModel, TestModel, local_server_out, test_out
from denizen.shapes.models import AgentModels, ListedModel, MissingKey, ModelSetupOut, ProviderOut, TestOut

router = new_router()

Payer = Literal["organization", "server", "you"]
OPERATORS = {"x-who": "operators: owners of the first organization"}
Setup = Annotated[bool, Query(description="Also what can be connected, and the model servers on this machine.")]


@router.get(
    "/api/models",
    summary="List models that agents can use",
    openapi_extra={"x-who": "people; with `setup`, operators"},
)
async def list_models(caller: Person, setup: Setup = False) -> AgentModels:
    """Models that need no key, and those that providers with a key offer: they are asked themselves, every ten
    minutes at most; of one that does not answer, the known ones are listed. Any other `provider:name` can be used as
    well.
    """
    return await _listed(caller.runtime, caller, setup=setup)


@router.post("/api/models/test", summary="Test a model with one call", openapi_extra=OPERATORS)
async def test_model(caller: Owner, given: TestModel) -> TestOut:
    """The model is asked for one small tool call, which costs a few tokens. If it fails, `problem` says why."""
    return test_out(await caller.runtime.models.test(given.name, address=given.address, key=given.key, by=caller.actor))


@router.put("/api/models/default", summary="Choose the default model of the server", openapi_extra=OPERATORS)
async def choose_model(caller: Owner, given: ChooseModel) -> AgentModels:
    """Agents without a model of their own use it from now on, also those that are awake. If the configuration names
    a model, none can be chosen here.
    """
    runtime = caller.runtime
    await runtime.models.choose(given.name, address=given.address, key=given.key, by=caller.actor)
    return await _listed(runtime, caller)


@router.delete("/api/models/default", summary="Remove the chosen default model", openapi_extra=OPERATORS)
async def forget_chosen_model(caller: Owner) -> AgentModels:
    """Agents without a model of their own use what is found: a key in the environment, a server on this machine, or
    the built-in demo model. Addresses and keys stay.
    """
    runtime = caller.runtime
    await runtime.models.choose(None, by=caller.actor)
    return await _listed(runtime, caller)


async def _listed(runtime: Runtime, caller: Caller, *, setup: bool = False) -> AgentModels:
    await runtime.server_models.refresh(runtime.db)
    # A token of a lesser role lets even an owner look only.
    may_choose = caller.role == "owner" and await runtime.db.read(is_operator, caller.actor)
    if setup and not may_choose:
        raise Problem("not_allowed", NOT_AN_OPERATOR)
    kept = await runtime.db.read(secrets.secrets_of, caller.entity.organization_id)
    theirs = {each.name for each in kept if each.owner_id is None} | set(runtime.vault.shared)
    own = {each.name for each in kept if each.owner_id == caller.entity.id}
    of_server = catalog.keys_of_server()
    found = {name: ListedModel(name=name, paid_by="nobody") for name in runtime.model_catalog.names()}
    missing: dict[str, str] = {}
    payers: dict[str, Payer] = {}
    known: dict[str, list[str]] = {}
    for name, key in catalog.known_names().items():
        provider = name.partition(":")[0]
        known.setdefault(provider, []).append(name)
        payer = "organization" if key in theirs else "server" if key in of_server else "you" if key in own else None
        if payer is None:
            missing[provider] = key
        else:
            payers[provider] = payer
    for provider, names in (await _offered(runtime, caller, payers)).items():
        # What the provider says itself is what can be used; otherwise, what is known of it.
        found |= {name: ListedModel(name=name, paid_by=payers[provider]) for name in names or known[provider]}
    default = runtime.server_models
    needs_key = runtime.model_catalog.needs_key(default.default)
    found.setdefault(default.default, ListedModel(name=default.default, paid_by="server" if needs_key else "nobody"))
    return AgentModels(
        default=default.default,
        default_source=default.source,
        default_reason=default.reason,
        may_choose=may_choose,
        models=[found[name] for name in sorted(found, key=_usefulness)],
        missing_keys=[MissingKey(provider=each, key=missing[each]) for each in sorted(missing)],
        setup=await _setup(runtime, theirs, of_server) if setup else None,
    )


async def _offered(runtime: Runtime, caller: Caller, payers: Mapping[str, Payer]) -> dict[str, tuple[str, ...]]:
    """What these providers offer for the keys that pay; nothing of those that did not answer."""
    home, me = caller.entity.organization_id, caller.entity.id
    keys: dict[str, str | None] = {}
    for provider, payer in payers.items():
        name = runtime.model_catalog.key_name(f"{provider}:")
        if payer != "server" and name is not None:
            owner = me if payer == "you" else None
            keys[provider] = await runtime.db.read(secrets.resolve, runtime.vault, home, name, owner)
    asked = [runtime.offered_models.names(each, keys.get(each)) for each in payers]
    return dict(zip(payers, await asyncio.gather(*asked), strict=True))


def _usefulness(name: str) -> tuple[str, int, str]:
    """Sorts by provider, and those of a provider by what most people look for: an alphabetical list begins with models
    that nobody wants."""
    provider = name.partition(":")[0]
    usual = USUAL_MODELS.get(provider, ())
    return provider, usual.index(name) if name in usual else len(usual), name


async def _setup(runtime: Runtime, kept: set[str], of_server: frozenset[str]) -> ModelSetupOut:
    found = await runtime.models.local()
    return ModelSetupOut(
        providers=[_provider(runtime, each, kept, of_server) for each in providers(os.environ)],
        servers=[local_server_out(each) for each in found],
    )


def _provider(runtime: Runtime, each: ModelProvider, kept: set[str], of_server: frozenset[str]) -> ProviderOut:
    return ProviderOut(
        provider=each.prefix,
        title=each.title,
        key=each.key_name,
        needs_key=each.needs_key,
        key_kept="organization" if each.key_name in kept else "server" if each.key_name in of_server else None,
        takes_address=each.takes_address,
        needs_address=each.needs_address,
        address=runtime.model_catalog.addresses.get(each.prefix) or each.usual_address,
        address_set_by=each.fixed_by,
        suggestions=[*each.suggestions],
    )
