import { type FormEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { ApiError, get, inWords, type Me, post } from "../denizen/api";
import { keepPageKey } from "../denizen/pageKey";
import { Button, buttonClass } from "../ui/Button";
import { TextField } from "../ui/Field";
import css from "./shell.module.css";
import { base } from "../denizen/base";

const USED = "This link was already used, or it is older than ten minutes. Ask an admin for a new one, or get it with: denizen login";

const NO_COOKIE = "This browser did not keep the cookie of the session. Allow cookies for this address, then sign in again.";

/** Signs in with what stands behind the # of the address, or with a token that is typed. `ended`: one was signed in. */
export function SignIn({ ended, onSignedIn }: { ended: boolean; onSignedIn: (me: Me) => void }): ReactNode {
  const [secret, setSecret] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const linked = useRef(takeSecret());
  const provider = useProvider();

  const signIn = async (given: string): Promise<void> => {
    setBusy(true);
    setError(null);
    try {
      const session = await post("/api/session", { body: { secret: given } });
      keepPageKey(session.page_key);
    } catch (problem) {
      const isRefused = problem instanceof ApiError && problem.status === 401;
      setError(isRefused && given.startsWith("dzl_") ? USED : inWords(problem));
      // What was not looked at can be sent again.
      if (!isRefused) setSecret(given);
      setBusy(false);
      return;
    }
    try {
      onSignedIn(await get("/api/me"));
    } catch (problem) {
      setError(problem instanceof ApiError && problem.status === 401 ? NO_COOKIE : inWords(problem));
      setBusy(false);
    }
  };
  useEffect(() => {
    const given = linked.current;
    linked.current = "";
    if (given) void signIn(given);
    // Once: a link is good once.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, []);

  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const given = secret.trim().replace(/^.*#/, "");
    setSecret("");
    if (given) void signIn(given);
  };
  return (
    <main className={css.threshold}>
      <form className={css.signIn} onSubmit={submit}>
        <img src={`${base}/icon.svg`} alt="" width={44} height={44} />
        <h1>Denizen</h1>
        {ended && <p role="status">Your session has ended. What you have not sent is kept in this browser.</p>}
        {provider && (
          <>
            <a className={buttonClass("primary")} href={provider.sign_in}>
              Sign in with {provider.name}
            </a>
            <p className={css.aside}>
              Signed in with another account? <a href={provider.sign_out}>Sign out of {provider.name}</a> first.
            </p>
          </>
        )}
        <p>{provider ? "Or sign in" : "Sign in"} with an access token or a sign-in link.</p>
        <TextField
          label="Access token or link"
          type="password"
          autoComplete="off"
          autoFocus
          required
          value={secret}
          onChange={(event) => setSecret(event.target.value)}
          error={error}
          placeholder="dz_…"
        />
        <Button variant={provider ? "plain" : "primary"} type="submit" busy={busy}>
          Sign in
        </Button>
        <p className={css.aside}>
          No token? Ask an admin for a sign-in link. On the machine that runs this server, <code>denizen login</code> prints one.
        </p>
      </form>
    </main>
  );
}

interface Provider {
  name: string;
  sign_in: string;
  sign_out: string;
}

/** The identity provider that people can sign in with; null if there is none. */
function useProvider(): Provider | null {
  const [provider, setProvider] = useState<Provider | null>(null);
  useEffect(() => {
    let gone = false;
    fetch(`${base}/api/sign-in`)
      .then((answer) => answer.json() as Promise<{ provider: Provider | null }>)
      .then((told) => {
        if (!gone) setProvider(told.provider);
      })
      .catch(() => undefined); // Without it, tokens and links still work.
    return () => {
      gone = true;
    };
  }, []);
  return provider;
}

let taken: string | null = null;

/** The secret behind the #; out of the address bar and the history at once. */
function takeSecret(): string {
  if (taken === null && location.pathname === `${base}/login`) {
    taken = location.hash.slice(1);
    if (taken) history.replaceState(null, "", location.pathname);
  }
  return taken ?? "";
}
