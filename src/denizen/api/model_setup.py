"""`denizen.models`: which servers run on this machine, one test call, and the choice of the default model."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from denizen.access import audit, secrets
from denizen.access.audit import OPERATOR, Actor
from denizen.access.operators import is_operator
from denizen.access.secrets import SecretLocation
from denizen.api.subject import Subject
from denizen.cycles import server_models
from denizen.errors import InvalidInput, ModelError, NotAllowed
from denizen.ids import OrganizationId
from denizen.inbox import parking
from denizen.models import context_size
from denizen.models.abilities import Abilities, abilities_of
from denizen.models.discovery import installed_in_ollama
from denizen.models.local_servers import find_servers
from denizen.models.location import OLLAMA_URL, ollama_in
from denizen.models.providers import ModelProvider, check_address, is_metadata, provider_named
from denizen.spaces import directory
from denizen.storage.database import Tx
from denizen.tools import addresses

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from denizen.models.probing import ModelTest

PATIENCE_SECONDS: Final = 10.0
"""How long a server may take to list its models, if a person asks. A missing server is noticed at once."""
MOST_LISTED: Final = 50
"""How many models of one server are described."""
NOT_AN_OPERATOR: Final = "Models of the server are for its operators: the owners of the first organization."


@dataclass(frozen=True, slots=True)
class TestResult:
    """How a model answered, or why it did not."""

    name: str
    error: ModelError | None = None
    """Why it cannot be used, and what to do; None: it answered."""
    tested: ModelTest | None = None
    abilities: Abilities | None = None

    __test__ = False


@dataclass(frozen=True, slots=True)
class LocalModels:
    """A model server that answers on this machine, and what is known of its models, by their names."""

    prefix: str
    title: str
    address: str
    models: tuple[tuple[str, Abilities], ...]


class ModelSetup(Subject):
    """The models that agents think with: registered from Python, found on this machine, tested and chosen.

    ```python
    from denizen import reply, scripted

    denizen.models.register("quick", scripted(reply("Yes.")))
    assert (await denizen.models.test("demo")).error is None
    await denizen.models.choose("demo")
    assert denizen.default_model == "demo"
    ```
    """

    def register(self, name: str, model: Model) -> None:
        """Agents can be given this model by its name from now on."""
        self._runtime.model_catalog.register(name, model)

    async def _require_operator(self, by: Actor) -> None:
        """Raises `NotAllowed` unless the server is theirs."""
        if not await self._runtime.db.read(is_operator, by):
            raise NotAllowed(NOT_AN_OPERATOR)

    async def local(self) -> list[LocalModels]:
        """The model servers on this machine. Only loopback addresses are asked."""
        ollama, others = await asyncio.gather(
            installed_in_ollama(os.environ, PATIENCE_SECONDS), find_servers(os.environ, PATIENCE_SECONDS)
        )
        servers = [(each.server.prefix, each.server.title, each.url, each.names) for each in others]
        if ollama:
            names = tuple(f"ollama:{each}" for each in ollama)
            servers.insert(0, ("ollama", "Ollama", ollama_in(os.environ) or OLLAMA_URL, names))
        return [await self._describe_server(*each) for each in servers]

    async def _describe_server(self, prefix: str, title: str, address: str, names: tuple[str, ...]) -> LocalModels:
        known: list[tuple[str, Abilities]] = []
        for name in names[:MOST_LISTED]:
            # At the address where it was found, which need not be the one that an operator has chosen.
            async with self._runtime.model_catalog.tried(name, None, address) as model:
                await context_size.ask_server(model)
                known.append(
                    (
                        name,
                        await asyncio.to_thread(
                            abilities_of, model, name, self._runtime.prices, self._runtime.contexts
                        ),
                    )
                )
        return LocalModels(prefix, title, address, tuple(known))

    async def test(
        self, name: str, *, address: str | None = None, key: str | None = None, by: Actor = OPERATOR
    ) -> TestResult:
        """Ask the model for one small call, with this key and at this address, or with those that are kept. An empty
        address is the provider's own.

        What the model or its provider refuses is in the result; what cannot be asked raises `InvalidInput`.
        """
        await self._require_operator(by)
        provider, address = await self._check_model_address(name, address)
        if key is None and not self._changes_address(provider, address):
            key = await self._kept_key(name)
        try:
            async with self._runtime.model_catalog.tried(name, key, address) as model:
                from denizen.models.probing import try_model

                tested = await try_model(model)
                await context_size.ask_server(model)
                known = await asyncio.to_thread(abilities_of, model, name, self._runtime.prices, self._runtime.contexts)
        except ModelError as error:
            return TestResult(name, error)
        return TestResult(name, None, tested, known)

    async def choose(
        self, name: str | None, *, address: str | None = None, key: str | None = None, by: Actor = OPERATOR
    ) -> None:
        """Agents that name no model think with this one from now on, also those that are awake; None: with what is
        found, as if nobody had chosen.

        The address and the key are kept, the key sealed as the first organization's. An empty address is the
        provider's own, instead of one that was kept. Raises `InvalidInput` where the
        configuration names the model.
        """
        await self._require_operator(by)
        if self._runtime.server_models.configured:
            raise InvalidInput(
                f"The configuration sets the model {self._runtime.server_models.configured}. "
                "Remove DENIZEN_MODEL, `model` in denizen.toml or --model first, then choose one here."
            )
        if name is None:
            self._runtime.server_models.apply(await self._runtime.db.write(_choose, None, {}, None, by))
            return
        provider, address = await self._check_model_address(name, address)
        if (
            key is None
            and provider is not None
            and self._changes_address(provider, address)
            # A key in the environment of the server is for the provider's own address.
            and ((provider.needs_key and address) or await self._kept_key(name) is not None)
        ):
            raise InvalidInput("key: The address is another one: enter the key for it.")
        sealed = await self._seal_key(name, key)
        given = {} if provider is None or address is None else {provider.prefix: address}
        self._runtime.server_models.apply(await self._runtime.db.write(_choose, name, given, sealed, by))

    async def _check_model_address(self, name: str, address: str | None) -> tuple[ModelProvider | None, str | None]:
        self._runtime.model_catalog.check_name(name)
        prefix = name.partition(":")[0]
        provider = provider_named(prefix, os.environ)
        if address is None:
            return provider, None
        if provider is None or not provider.takes_address:
            raise InvalidInput(f"address: Models of {prefix} have no address of their own. Leave it out.")
        if provider.fixed_by is not None:
            raise InvalidInput(f"address: {provider.fixed_by} sets the address of {provider.title}. Change it there.")
        if not address.strip() and not provider.needs_address:
            return provider, ""
        address = check_address(prefix, address)
        await _refuse_metadata(address)
        return provider, address

    def _changes_address(self, provider: ModelProvider | None, address: str | None) -> bool:
        """Whether the address differs from the one that the stored key is for: a key is sent to no other."""
        if provider is None or address is None:
            return False
        return address != (self._runtime.model_catalog.addresses.get(provider.prefix) or provider.usual_address or "")

    async def _kept_key(self, name: str) -> str | None:
        key_name = self._runtime.model_catalog.key_name(name)
        if key_name is None:
            return None
        home = await self._runtime.db.read(directory.first_organization)
        return (
            None if home is None else await self._runtime.db.read(secrets.resolve, self._runtime.vault, home, key_name)
        )

    async def _seal_key(self, name: str, key: str | None) -> tuple[SecretLocation, str, str] | None:
        key_name = self._runtime.model_catalog.key_name(name)
        if key is None:
            return None
        if key_name is None:
            raise InvalidInput(f"key: The model {name} takes no key. Leave it out.")
        place = SecretLocation(await self._first_organization(), key_name)
        sealed = await asyncio.to_thread(self._runtime.vault.seal, secrets.check_value(key), place.purpose)
        return place, sealed, secrets.hint(key)

    async def _first_organization(self) -> OrganizationId:
        home = await self._runtime.db.read(directory.first_organization)
        return await self._runtime.organization_id(home)


def _choose(
    tx: Tx, name: str | None, given: dict[str, str], sealed: tuple[SecretLocation, str, str] | None, by: Actor
) -> server_models.ChosenModels:
    home = directory.first_organization(tx)
    assert home is not None
    if sealed is not None:
        place, text, hint = sealed
        secrets.put(tx, place, text, hint)
        audit.record(tx, home, by, "set_key", None, name=place.name, whose="organization")
    if name is None:
        audit.record(tx, home, by, "forget_chosen_model")
    else:
        audit.record(tx, home, by, "choose_model", None, model=name, **given)
    # Agents that could not think with the old model may be able to with this one.
    parking.retry_all(tx)
    return server_models.change(tx, name, given)


async def _refuse_metadata(address: str) -> None:
    """Raises `InvalidInput` if the host resolves to a cloud metadata address."""
    parts = urlsplit(address)
    try:
        found = await addresses.resolve(parts.hostname or "", parts.port or 0)
    except OSError:
        return  # The test reports that nothing answers there.
    if any(is_metadata(str(each)) for each in found):
        raise InvalidInput("address: This address belongs to the machine's network, not to a model server.")
