"""The page at `/login`: signs in with the secret behind the # of its address, and shows who is signed in.

It loads nothing: its one script and its one style are allowed by their hashes, and nothing else is.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Final

_STYLE: Final = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 26rem; margin: 18vh auto; padding: 0 1rem; }
input, button { font: inherit; padding: .5rem .75rem; box-sizing: border-box; width: 100%; margin-top: .5rem; }
[hidden] { display: none; }
"""

_SCRIPT: Final = """
"use strict";
const part = (name) => document.getElementById(name);
const say = (text) => { part("said").textContent = text; };

async function ask(method, path, body) {
  const options = { method, credentials: "same-origin", headers: { "Content-Type": "application/json" } };
  const key = localStorage.getItem("page key");
  if (key) options.headers["Denizen-Page-Key"] = key;
  if (body !== undefined) options.body = JSON.stringify(body);
  const answer = await fetch(path, options);
  const told = answer.status === 204 ? {} : await answer.json();
  if (!answer.ok) throw new Error(told.detail || "The server did not answer as it should.");
  return told;
}

async function show() {
  const me = await ask("GET", "api/me");
  say(`You are ${me.name} (@${me.handle}), ${me.role} of ${me.organization.name}.`);
  part("in").hidden = true;
  part("out").hidden = false;
}

async function signIn(secret) {
  say("Signing in …");
  try {
    const session = await ask("POST", "api/session", { secret });
    localStorage.setItem("page key", session.page_key);
    await show();
  } catch (error) {
    say(secret.startsWith("dzl_") ? "This link was used already, or it is older than ten minutes. Ask for a new one."
      : error.message);
    part("in").hidden = false;
  }
}

part("in").addEventListener("submit", (event) => {
  event.preventDefault();
  const secret = part("secret").value.trim();
  part("secret").value = "";
  if (secret) signIn(secret);
});
part("out").addEventListener("click", async () => {
  await ask("DELETE", "api/session");
  localStorage.removeItem("page key");
  part("out").hidden = true;
  part("in").hidden = false;
  say("You are signed out.");
});

fetch("api/sign-in").then((answer) => answer.json()).then(({ provider }) => {
  if (!provider) return;
  part("provider").href = provider.sign_in;
  part("provider").textContent = `Sign in with ${provider.name}`;
  part("provider").hidden = false;
}).catch(() => {});

const secret = location.hash.slice(1);
// Out of the address bar and the history at once.
history.replaceState(null, "", location.pathname);
if (secret) signIn(secret);
else show().catch(() => { part("in").hidden = false; say("Sign in with an access token, or with a login link."); });
"""

PAGE: Final = f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Denizen</title>
<style>{_STYLE}</style>
<h1>Denizen</h1>
<p id="said" role="status">…</p>
<p><a id="provider" hidden></a></p>
<form id="in" hidden>
<label for="secret">Access token</label>
<input id="secret" type="password" autocomplete="off" required>
<button>Sign in</button>
</form>
<button id="out" hidden>Sign out</button>
<noscript>This page needs JavaScript to sign you in.</noscript>
<script>{_SCRIPT}</script>
</html>
"""


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


CONTENT_SECURITY_POLICY: Final = (
    f"default-src 'none'; script-src {_hash(_SCRIPT)}; style-src {_hash(_STYLE)}; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
