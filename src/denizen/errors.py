"""Every error Denizen raises on purpose. Each has a stable `code`; the message says what was wrong and what to do.

DenizenError
├── InvalidInput            the input is invalid
│   ├── ToolMissing         an agent uses tools that this process does not have
│   ├── StepFunctionFailed  a function of an agent's cycles failed, or returned something invalid
│   ├── HandleTaken         another entity of the organization has that handle
│   ├── ChangedMeanwhile    it was changed since the version that the requester has seen
│   ├── IdempotencyKeyReused  a key or id was used for something else before
│   ├── FileTooLarge        a file or picture is larger than allowed
│   ├── QuotaExceeded       the organization has no room for more files, or the uploader has too many unused ones
│   ├── UploadConflict      an upload continues at another offset
│   ├── PriceUnknown        a budget in dollars needs the price of a model, which is unknown
│   ├── DefinitionsInvalid  definition files have errors; nothing was applied
│   └── ImportInvalid       a file cannot be imported; nothing was
├── NotFound                it does not exist, or the requester may not know of it
├── NotAMember              only members of a space may read it or speak in it
├── NotAllowed              the requester does not have permission
├── AlreadySettled          a tool call already has its result
├── ToolFailed              an outside tool failed
│   ├── AddressRefused      it may not reach that address
│   └── SignInNeeded        its server wants a person to sign in first
├── LeaseLost               another process thinks for this agent now
├── StorageError            the database failed
│   ├── DatabaseUnavailable it cannot be reached, now; nothing was written
│   ├── DatabaseLocked      another program holds it
│   ├── DatabaseReadOnly    it may not be written to
│   ├── DatabaseNewer       it was written by a newer Denizen
│   ├── DatabaseDamaged     it is not a database, or it is broken
│   ├── DiskFull            there is no room left to write
│   └── OutcomeUnknown      the connection broke while committing
├── ModelError              a language model could not be reached, or did not answer
│   ├── ModelUnknown        no such model is configured here
│   │   └── ModelKeyMissing     its provider wants an API key, and there is none
│   ├── ModelRejected       the provider refuses this request, and always will
│   │   ├── ModelKeyRejected    it does not accept the API key, or its credit is used up
│   │   ├── ModelUnsuitable     it has no such model, or one that cannot use tools
│   │   │   └── ResponsesApiMissing  a server in place of OpenAI has only Chat Completions
│   │   ├── RequestTooLarge     the request does not fit the model's context window
│   │   └── ContentRefused      it refuses to process what the request says
│   ├── ModelOverloaded     the provider asks us to come back later
│   └── ModelUnreachable    the network or the provider failed on the way
│       └── ModelAnswerUnusable it was reached: its answer is an error, or broke off, or cannot be read
├── BudgetSpent             a budget is used up
├── SecretUnreadable        no key can decrypt a stored secret
├── SecretKeyMissing        there is no key to encrypt secrets with
├── SignatureWrong          a request to a webhook was not signed with its secret
│   └── SignatureExpired    it was, but too long ago
├── TokenNotBelieved        a token of an identity provider is not valid here
├── IssuerUnreachable       the keys of the identity provider cannot be fetched
├── BridgeUnusable          a bridge cannot start with its settings
├── BusError                the bus could not be opened
├── PortTaken               another program listens where the server should
├── ServerError             a Denizen server could not handle a request
│   ├── ServerUnreachable   it does not answer
│   ├── TokenRefused        the access token is unknown, expired or revoked
│   └── RequestRefused      it refuses the request, with a code and a reason
├── SettingsError           the settings are wrong, unknown or contradict each other
└── SubscriberTooSlow       a reader of a live stream fell too far behind and was disconnected
"""

from __future__ import annotations

from typing import TypeVar

from denizen.amounts import human_size

T = TypeVar("T")


class DenizenError(Exception):
    """Something went wrong that Denizen has a name for."""

    code = "error"

    def __init__(self, message: str = "") -> None:
        super().__init__(message or (self.__doc__ or "").strip())


class InvalidInput(DenizenError):
    """The input is invalid."""

    code = "invalid_input"


class HandleTaken(InvalidInput):
    """Another entity of this organization has that handle."""

    code = "handle_taken"


class ChangedMeanwhile(InvalidInput):
    """Somebody has changed this meanwhile. Read it again, then repeat your change."""

    code = "changed_meanwhile"


class IdempotencyKeyReused(InvalidInput):
    """This Idempotency-Key was used for another request. Use a new one."""

    code = "idempotency_key_reused"


class FileTooLarge(InvalidInput):
    """A file or picture is larger than allowed."""

    code = "file_too_large"

    def __init__(self, name: str, size: int, limit: int) -> None:
        self.size = size
        """In bytes, as `limit`."""
        self.limit = limit
        told, most = human_size(size), human_size(limit)
        if told == most:
            told, most = f"{size:,} bytes", f"{limit:,} bytes"
        super().__init__(f"{name} is too large ({told}). Choose a file of at most {most}.")


class QuotaExceeded(InvalidInput):
    """The organization has no room for more files."""

    code = "quota_exceeded"

    def __init__(
        self, message: str = "", *, size: int | None = None, used: int | None = None, limit: int | None = None
    ) -> None:
        self.size = size
        """How many bytes there is no room for; None if there are too many files."""
        self.used = used
        self.limit = limit
        """How many bytes all files of the organization may have."""
        super().__init__(message)


class UploadConflict(InvalidInput):
    """The upload continues at another offset."""

    code = "upload_conflict"


class PriceUnknown(InvalidInput):
    """A budget in dollars needs the price of every model that it is for."""

    code = "price_unknown"

    def __init__(self, model: str, *, agent: str = "") -> None:
        self.model = model
        self.agent = agent
        """The handle of the agent that it is about, where several are."""
        whose = f"The agent @{agent}: " if agent else ""
        super().__init__(
            f"{whose}The price of the model {model!r} is unknown, so that a budget in dollars cannot be kept. Set a "
            "budget in tokens, or give the price in dollars per million tokens under [prices] in denizen.toml: "
            f'"{model}" = {{ input = 1, output = 4 }}.'
        )


class DefinitionsInvalid(InvalidInput):
    """Definition files have errors. Nothing was applied."""

    code = "definitions_invalid"

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        """Every problem that was found: the file, the line, the key, what is wrong."""
        super().__init__("\n".join(problems))


class ImportInvalid(InvalidInput):
    """A file cannot be imported. Nothing of it was."""

    code = "import_invalid"

    def __init__(self, file: str, line: int, what: str) -> None:
        self.file = file
        self.line = line
        super().__init__(f"{file}, line {line:,}: {what}. Nothing was imported.")


class ToolMissing(InvalidInput):
    """An agent uses tools that this process does not have."""

    code = "tool_missing"


class StepFunctionFailed(InvalidInput):
    """A function of an agent's cycles failed, or returned something invalid."""

    code = "step_function_failed"

    def __init__(self, function: str, what: str) -> None:
        self.function, self.what = function, what
        super().__init__(f"The function {function!r} failed: {what}. Correct it and start the server again.")


class NotFound(DenizenError):
    """It does not exist, or the requester may not know of it."""

    code = "not_found"

    def __init__(self, kind: str, identifier: str, sentence: str | None = None, *, hint: str = "") -> None:
        self.kind = kind
        self.identifier = identifier
        named = "person, agent or service" if kind == "entity" else kind
        super().__init__(sentence or f"There is no {named} {identifier!r}.{hint}")


def existing(found: T | None, kind: str, identifier: str) -> T:
    """Returns what was found. Raises `NotFound` if that is None."""
    if found is None:
        raise NotFound(kind, identifier)
    return found


class NotAMember(DenizenError):
    """Only members of a space may read it or speak in it."""

    code = "not_a_member"


class NotAllowed(DenizenError):
    """You do not have permission to do this."""

    code = "not_allowed"


class AlreadySettled(DenizenError):
    """This tool call already has its result."""

    code = "already_settled"


class ToolFailed(DenizenError):
    """The tool failed. The message is for the model."""

    code = "tool_failed"


class AddressRefused(ToolFailed):
    """Tools may not reach that address."""

    code = "address_refused"


class SignInNeeded(ToolFailed):
    """The server of a tool wants a person to sign in first."""

    code = "sign_in_needed"


class LeaseLost(DenizenError):
    """Another process owns this agent now; whatever we were thinking is void."""

    code = "lease_lost"


class StorageError(DenizenError):
    """The database failed."""

    code = "storage_error"


class DatabaseUnavailable(StorageError):
    """The database cannot be reached; nothing was written."""

    code = "database_unavailable"


class DatabaseLocked(StorageError):
    """Another program holds the database."""

    code = "database_locked"


class DatabaseReadOnly(StorageError):
    """The database may not be written to."""

    code = "database_read_only"


class DatabaseNewer(StorageError):
    """The database was written by a newer version of Denizen."""

    code = "database_newer"


class DatabaseDamaged(StorageError):
    """The file is not a database, or it is broken."""

    code = "database_damaged"


class DiskFull(StorageError):
    """There is no room left on the disk; nothing was written."""

    code = "disk_full"


class OutcomeUnknown(StorageError):
    """The connection broke while committing: the write may or may not have happened."""

    code = "outcome_unknown"


class ModelError(DenizenError):
    """A language model could not be reached, or did not answer."""

    code = "model_error"

    def __init__(self, message: str = "", *, retry_after: float | None = None, model: str = "") -> None:
        self.retry_after = retry_after
        """Seconds the provider asked us to wait, where it said so."""
        self.model = model
        """The name of the model, where only whoever raises it knows that."""
        super().__init__(message)


class ModelUnknown(ModelError):
    """No such model is configured here."""

    code = "model_unknown"


class ModelKeyMissing(ModelUnknown):
    """The provider of this model wants an API key, and there is none."""

    code = "model_key_missing"


class ModelRejected(ModelError):
    """The provider refuses this request, and would refuse it again."""

    code = "model_rejected"


class ModelKeyRejected(ModelRejected):
    """The provider does not accept the API key, or the credit of its account is used up."""

    code = "model_key_rejected"


class ModelUnsuitable(ModelRejected):
    """The provider has no such model, or one that cannot use tools."""

    code = "model_unsuitable"


class ResponsesApiMissing(ModelUnsuitable):
    """A server in place of OpenAI does not have its Responses API, through which `openai:` models are asked."""

    code = "responses_api_missing"

    def __init__(self, message: str = "", *, instead: str = "") -> None:
        self.instead = instead
        """The name under which the same model is asked through Chat Completions, which all of them have."""
        super().__init__(message)


class RequestTooLarge(ModelRejected):
    """The request does not fit the model's context window."""

    code = "request_too_large"

    def __init__(self, message: str = "", *, context_tokens: int | None = None) -> None:
        self.context_tokens = context_tokens
        """How large the provider says that the window is, where it says so."""
        super().__init__(message)


class ContentRefused(ModelRejected):
    """The provider refuses to process what the request says."""

    code = "content_refused"


class ModelOverloaded(ModelError):
    """The provider is overloaded or limits our rate."""

    code = "model_overloaded"

    def __init__(self, message: str = "", *, retry_after: float | None = None, loading: bool = False) -> None:
        self.loading = loading
        """Whether it is a local server that is loading the model."""
        super().__init__(message, retry_after=retry_after)


class ModelUnreachable(ModelError):
    """The network or the provider failed on the way."""

    code = "model_unreachable"


class ModelAnswerUnusable(ModelUnreachable):
    """The provider was reached: its answer is an error of its own, broke off, or cannot be read."""

    code = "model_answer_unusable"


class BudgetSpent(DenizenError):
    """The budget is used up."""

    code = "budget_spent"


class SecretUnreadable(DenizenError):
    """No key can decrypt a stored secret. Restore the earlier DENIZEN_SECRET_KEY, or set the secret again."""

    code = "secret_unreadable"


class SecretKeyMissing(DenizenError):
    """There is no key to encrypt secrets with. Set DENIZEN_SECRET_KEY."""

    code = "secret_key_missing"


class SignatureWrong(DenizenError):
    """The request was not signed with the webhook's secret."""

    code = "signature_wrong"


class SignatureExpired(SignatureWrong):
    """The signature is too old, or the sender's clock is wrong."""

    code = "signature_expired"


class TokenNotBelieved(DenizenError):
    """This token of an identity provider is not valid here."""

    code = "token_not_believed"


class IssuerUnreachable(DenizenError):
    """The keys of the identity provider cannot be fetched, so nobody can sign in with it."""

    code = "issuer_unreachable"


class BridgeUnusable(DenizenError):
    """The bridge cannot start with its settings."""

    code = "bridge_unusable"


class BusError(DenizenError):
    """The bus could not be opened."""

    code = "bus_error"


class SettingsError(DenizenError):
    """The settings are invalid."""

    code = "settings_invalid"

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        """Every problem that was found, each a sentence that says what to write instead."""
        only_one = len(problems) == 1
        super().__init__(problems[0] if only_one else "\n".join(["The settings have problems:", *_bullets(problems)]))


class PortTaken(DenizenError):
    """Another program listens on that port already."""

    code = "port_taken"

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port
        super().__init__(
            f"Port {port} on {host} is taken by another program, perhaps by another Denizen. "
            "Choose another port with DENIZEN_PORT or --port, or end that program."
        )


class ServerError(DenizenError):
    """The server could not handle the request."""

    code = "server_error"


class ServerUnreachable(ServerError):
    """The server does not answer. It may or may not have handled the request."""

    code = "server_unreachable"


class TokenRefused(ServerError):
    """The access token is unknown, expired or revoked."""

    code = "token_refused"


class RequestRefused(ServerError):
    """The server refuses the request, and says why."""

    code = "request_refused"

    def __init__(self, message: str, *, problem: str = "", status: int = 0) -> None:
        self.problem = problem
        """The server's own code for it, such as `not_found`."""
        self.status = status
        super().__init__(message)


class SubscriberTooSlow(DenizenError):
    """This reader fell too far behind the live stream and was disconnected. Continue from the last sequence number."""

    code = "subscriber_too_slow"


def explained(error: BaseException) -> str:
    """What went wrong, for people and models. Our own errors are sentences; others are told with their type."""
    said = str(error)
    if isinstance(error, DenizenError) and said:
        return said
    if isinstance(error, TimeoutError) and not said:
        return "It took too long, and was stopped."
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _bullets(sentences: tuple[str, ...]) -> list[str]:
    return [f"- {each}" for each in sentences]
