"""An OpenID Connect provider made with Django OAuth Toolkit: `python oidc_provider.py PORT REDIRECT_URI LOGOUT_URI`.

One client, `denizen`, which must use PKCE, and one user, `alice`, who signs in with a password in a form.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import django
from django.conf import settings
from jwcrypto.jwk import JWK

PORT, REDIRECT_URI, LOGOUT_URI = int(sys.argv[1]), sys.argv[2], sys.argv[3]

KEY = JWK.generate(kty="RSA", size=2048).export_to_pem(private_key=True, password=None).decode()
LOGIN = "<form method='post'>{% csrf_token %}{{ form }}<button>Sign in</button></form>"
settings.configure(
    SECRET_KEY="a key for a test",
    ALLOWED_HOSTS=["localhost"],
    ROOT_URLCONF=__name__,
    LOGIN_URL="/login/",
    USE_TZ=True,
    PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],  # The others take seconds on a busy machine.
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": Path(tempfile.mkdtemp()) / "provider.db"}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions", "oauth2_provider"],
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
    ],
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "APP_DIRS": True,
            "OPTIONS": {
                "context_processors": ["django.template.context_processors.request"],
                "loaders": [
                    ("django.template.loaders.locmem.Loader", {"registration/login.html": LOGIN}),
                    "django.template.loaders.app_directories.Loader",
                ],
            },
        }
    ],
    OAUTH2_PROVIDER={
        "OIDC_ENABLED": True,
        "PKCE_REQUIRED": True,
        "OIDC_RSA_PRIVATE_KEY": JWK.generate(kty="RSA", size=2048)
        .export_to_pem(private_key=True, password=None)
        .decode(),
        "OIDC_RP_INITIATED_LOGOUT_ENABLED": True,
        "OIDC_RP_INITIATED_LOGOUT_ALWAYS_PROMPT": False,
        "OAUTH2_VALIDATOR_CLASS": f"{__name__}.Validator",
        "SCOPES": {"openid": "Who you are", "profile": "Your name", "email": "Your address"},
        "ALLOWED_REDIRECT_URI_SCHEMES": ["http", "https"],
    },
)
settings.TEMPLATES[0].pop("APP_DIRS")
sys.modules["oidc_provider"] = sys.modules[__name__]
django.setup()

from django.contrib.auth.models import Group, User  # noqa: E402
from django.contrib.auth.views import LoginView  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.urls import include, path  # noqa: E402
from oauth2_provider.models import Application  # noqa: E402
from oauth2_provider.oauth2_validators import OAuth2Validator  # noqa: E402


class Validator(OAuth2Validator):
    oidc_claim_scope = None

    def get_additional_claims(self, request):
        user = request.user
        groups = [each.name for each in user.groups.all()]
        return {"name": user.get_full_name(), "preferred_username": user.username, "groups": groups}


urlpatterns = [
    path("login/", LoginView.as_view()),
    path("o/", include("oauth2_provider.urls", namespace="oauth2_provider")),
]

call_command("migrate", verbosity=0)
alice = User.objects.create_user("alice", "alice@example.com", "swordfish", first_name="Alice", last_name="Ames")
alice.groups.add(Group.objects.create(name="denizen-admins"))
Application.objects.create(
    name="Denizen",
    client_id="denizen",
    client_secret="hush",
    client_type=Application.CLIENT_CONFIDENTIAL,
    authorization_grant_type=Application.GRANT_AUTHORIZATION_CODE,
    redirect_uris=REDIRECT_URI,
    post_logout_redirect_uris=LOGOUT_URI,
    algorithm=Application.RS256_ALGORITHM,
    skip_authorization=True,
)
sys.stderr.write("ready\n")
sys.stderr.flush()
call_command("runserver", f"localhost:{PORT}", use_reloader=False, use_threading=True)
