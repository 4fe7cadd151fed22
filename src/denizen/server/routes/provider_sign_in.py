"""Signing in with a browser at an identity provider, and out.

A browser that comes back with the provider's code gets a login link, which the sign-in page uses up for a session as it
does with any other: nothing else opens sessions.
"""

from __future__ import annotations

from html import escape
from typing import Final
from urllib.parse import urlsplit

import structlog
from fastapi import Request, Response

from denizen.access import audit, roles, tokens
from denizen.access.audit import OPERATOR
from denizen.access.oidc import Claims, Issuer
from denizen.access.oidc_sign_in import (
    ATTEMPT_SECONDS,
    SignInAttempt,
    authorization_url,
    kept_attempt,
    new_attempt,
    role_of_groups,
    with_query,
)
from denizen.app import Runtime
from denizen.errors import IssuerUnreachable, TokenNotBelieved
from denizen.ids import OrganizationId
from denizen.server.auth import Caller, admit
from denizen.server.context import Context, context_of
from denizen.server.problems import Problem
from denizen.server.reach import Visit
from denizen.server.router import new_router
from denizen.settings.shape import OidcSettings
from denizen.storage.database import Tx
from denizen.telemetry.logs import get_logger

log: structlog.typing.FilteringBoundLogger = get_logger(__name__)

router = new_router()

CALLBACK: Final = "/login/oidc/callback"
_LONGEST: Final = 4_096
"""Characters of a code."""


# Not in the OpenAPI document, like the page that asks: programs have tokens.
@router.get("/api/sign-in", include_in_schema=False)
async def sign_in_options(request: Request) -> dict[str, dict[str, str] | None]:
    """How people can sign in beside tokens and links."""
    context = context_of(request)
    issuer, base = context.issuer, context.reach.path
    if issuer is None or not issuer.settings.sign_in:
        return {"provider": None}
    name = issuer.settings.label or urlsplit(issuer.name).hostname or issuer.name
    return {"provider": {"name": name, "sign_in": f"{base}/login/oidc", "sign_out": f"{base}/login/oidc/logout"}}


@router.get("/login/oidc", include_in_schema=False)
async def begin_sign_in(request: Request) -> Response:
    """Sends the browser to the provider, with the secrets of the attempt in a cookie."""
    context, issuer = context_of(request), _issuer(request)
    try:
        endpoints = await issuer.endpoints()
    except IssuerUnreachable as error:
        return _failed(request, str(error), 503)
    attempt = new_attempt()
    address = authorization_url(
        endpoints.authorization,
        issuer.settings.audience or "",
        f"{context.runtime.public_url}{CALLBACK}",
        issuer.settings.scopes,
        attempt,
    )
    return _redirect(address, _cookie(_visit(request), attempt.cookie_value, ATTEMPT_SECONDS))


@router.get(CALLBACK, include_in_schema=False)
async def complete_sign_in(
    request: Request,
    code: str = "",
    state: str = "",
    iss: str | None = None,
    error: str = "",
    error_description: str = "",
) -> Response:
    """Takes the provider's answer, and sends the browser to the sign-in page with a link that is good once."""
    context, issuer, visit = context_of(request), _issuer(request), _visit(request)
    attempt = kept_attempt(request.cookies.get(_cookie_name(visit), ""))
    if attempt is None or not attempt.is_answered_by(state):
        where = f"Open {context.runtime.public_url}/login and begin there, in the same browser."
        return _failed(request, f"This answer belongs to no attempt to sign in here, or it took too long. {where}")
    if iss is not None and iss != issuer.name:
        return _failed(request, "Another identity provider has answered than the one that was asked.")
    if error or not code or len(code) > _LONGEST:
        return _failed(request, f"The identity provider did not sign you in: {(error_description or error)[:200]}.")
    try:
        claims, token = await _claims(context, issuer, attempt, code)
    except TokenNotBelieved as refused:
        context.failures.take(visit.address)
        log.info("sign-in at the identity provider failed", why=str(refused))
        return _failed(request, "What the identity provider said could not be verified. Try again.", 401)
    except IssuerUnreachable as unreachable:
        return _failed(request, str(unreachable), 503)
    try:
        secret = await context.runtime.db.write(_admitted, context.runtime, claims, token, issuer.settings)
    except Problem as problem:
        return _failed(request, str(problem.detail), problem.status_code)
    return _redirect(tokens.login_url(context.runtime.public_url, secret), _cookie(visit, "", 0))


@router.get("/login/oidc/logout", include_in_schema=False)
async def sign_out_at_provider(request: Request) -> Response:
    """Sends the browser to the provider to end its session there, if the provider offers that."""
    context, issuer = context_of(request), _issuer(request)
    back = f"{context.runtime.public_url}/login"
    try:
        end = (await issuer.endpoints()).end_session
    except IssuerUnreachable:
        end = None
    asked = {"client_id": issuer.settings.audience or "", "post_logout_redirect_uri": back}
    return _redirect(back if end is None else with_query(end, asked))


async def _claims(context: Context, issuer: Issuer, attempt: SignInAttempt, code: str) -> tuple[Claims, str]:
    """The verified claims of the ID token for this code, and the token."""
    token = await issuer.redeem(code, attempt.verifier, f"{context.runtime.public_url}{CALLBACK}")
    claims = await issuer.verify(token)
    if not attempt.is_meant_by(claims.nonce):
        raise TokenNotBelieved("it was made for another attempt to sign in")
    return claims, token


def _admitted(tx: Tx, runtime: Runtime, claims: Claims, token: str, settings: OidcSettings) -> str:
    """The secret of a login link for the person whom the token names, with the role of their groups."""
    home = OrganizationId(settings.organization) if settings.organization else None
    caller = admit(tx, runtime, claims, token, settings.create_people, home)
    if caller is None:
        raise Problem("unauthorized", "Your account here was removed. Ask an admin.")
    if settings.roles:
        _give_role(tx, caller, claims, settings)
    # Below the provider's token: whoever is unlinked from the provider is signed out.
    return tokens.create_login(tx, caller.entity.id, below=caller.token.id)[1]


def _give_role(tx: Tx, caller: Caller, claims: Claims, settings: OidcSettings) -> None:
    person, wanted = caller.entity, role_of_groups(claims.groups, settings.roles)
    before = roles.role_of(tx, person.id)
    if before == wanted or (before == "owner" and roles.count_owners(tx, person.organization_id) == 1):
        return  # An organization keeps its last owner, whatever groups say.
    roles.set_role(tx, person.id, wanted)
    audit.record(tx, person.organization_id, OPERATOR, "change_entity", person.id, role=wanted)


def _issuer(request: Request) -> Issuer:
    issuer = context_of(request).issuer
    if issuer is None or not issuer.settings.sign_in:
        raise Problem("not_found", "No identity provider is set up for signing in. Use a link or an access token.")
    return issuer


def _visit(request: Request) -> Visit:
    return request.scope["visit"]


def _cookie_name(visit: Visit) -> str:
    return "__Host-denizen-sign-in" if visit.secure else f"denizen-sign-in-{visit.port}"


def _cookie(visit: Visit, value: str, seconds: int) -> str:
    # Lax: the provider's page sends the browser back, and the cookie has to come along.
    secure = "; Secure" if visit.secure else ""
    return f"{_cookie_name(visit)}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}"


def _redirect(address: str, cookie: str | None = None) -> Response:
    headers = {"Location": address, "Cache-Control": "no-store"}
    return Response(status_code=303, headers=headers | ({} if cookie is None else {"Set-Cookie": cookie}))


def _failed(request: Request, sentence: str, status: int = 400) -> Response:
    """A page for the person whose browser it is."""
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>Sign-in failed</title><h1>Sign-in failed</h1><p>{escape(sentence)}</p>"
        f'<p><a href="{escape(context_of(request).reach.path)}/login">Back to the sign-in page</a></p></html>'
    )
    headers = {"Cache-Control": "no-store", "Set-Cookie": _cookie(_visit(request), "", 0)}
    return Response(page, status, headers, "text/html")
