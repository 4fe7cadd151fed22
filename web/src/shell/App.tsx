import { QueryClientProvider, useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useEffect, useState } from "react";
import { Router, useLocation } from "wouter";
import { ApiError, get, type Me, whenSignedOut } from "../denizen/api";
import { Live } from "../denizen/live";
import { hasPageKey } from "../denizen/pageKey";
import { openQueries } from "../denizen/queries";
import { RemotePictures } from "../ui/Markdown";
import { ErrorState } from "../ui/States";
import { Toasts } from "../ui/Toast";
import { Boundary } from "./Boundary";
import { Faces } from "./Faces";
import { Frame } from "./Frame";
import css from "./shell.module.css";
import { SignIn } from "./SignIn";
import { base } from "../denizen/base";

export function App(): ReactNode {
  const [client] = useState(openQueries);
  return (
    <QueryClientProvider client={client}>
      <Toasts>
        <Boundary>
          <Router base={base}>
            <Door />
          </Router>
        </Boundary>
      </Toasts>
    </QueryClientProvider>
  );
}

/** Whoever is signed in comes in; others are asked who they are. */
function Door(): ReactNode {
  const client = useQueryClient();
  const [path, go] = useLocation();
  const me = useQuery<Me | null>({ queryKey: ["me"], queryFn: whoAmI, staleTime: Infinity });
  const [ended, setEnded] = useState(false);
  useEffect(
    () =>
      whenSignedOut(() => {
        // Without a key nobody was signed in here.
        if (hasPageKey()) setEnded(true);
        client.setQueryData(["me"], null);
      }),
    [client],
  );

  if (path === "/login" || me.data === null) {
    return (
      <SignIn
        ended={ended}
        onSignedIn={(who) => {
          setEnded(false);
          // What someone else saw here before is gone.
          client.removeQueries({ predicate: (query) => query.queryKey[0] !== "me" });
          client.setQueryData(["me"], who);
          // The policy that lets the page show pictures of other sites comes with the page.
          if (who.organization.remote_pictures) window.location.replace(base + (path === "/login" ? "/" : path));
          else if (path === "/login") go("/", { replace: true });
        }}
      />
    );
  }
  if (me.data) {
    return (
      <Live key={me.data.id} me={me.data}>
        <RemotePictures value={me.data.organization.remote_pictures ?? false}>
          <Faces>
            <Frame />
          </Faces>
        </RemotePictures>
      </Live>
    );
  }
  return (
    <main className={css.threshold} aria-busy={me.isPending}>
      {me.error && <ErrorState error={me.error} onRetry={() => void me.refetch()} />}
    </main>
  );
}

async function whoAmI(): Promise<Me | null> {
  // Without the page's half of the secret there is no session, and the browser would log the refusal as an error.
  if (!hasPageKey()) return null;
  try {
    return await get("/api/me");
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) return null;
    throw error;
  }
}
