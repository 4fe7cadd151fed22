import { useQuery, useQueryClient } from "@tanstack/react-query";
import { PlugZap } from "lucide-react";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { useSearchParams } from "wouter";
import { get, inWords, post } from "../denizen/api";
import { Badge } from "../ui/Badge";
import { Button } from "../ui/Button";
import { Empty, Loaded } from "../ui/States";
import { Time } from "../ui/Time";
import { useToast } from "../ui/Toast";
import css from "./admin.module.css";
import { Section } from "./parts";

/** MCP servers that want a person to sign in. The authorization server sends the browser back to this page. */
export default function McpServers(): ReactNode {
  const client = useQueryClient();
  const say = useToast();
  const [search, setSearch] = useSearchParams();
  const [busy, setBusy] = useState<string | null>(null);
  const servers = useQuery({ queryKey: ["mcp-servers"], queryFn: ({ signal }) => get("/api/mcp-servers", { signal }).then((told) => told.servers) });
  const answered = search.has("state");
  const taken = useRef(false);

  useEffect(() => {
    // An answer counts once: the address is emptied before it is sent.
    if (!answered || taken.current) return;
    taken.current = true;
    const answer = window.location.href;
    setSearch({}, { replace: true });
    post("/api/mcp-servers/answer", { body: { answer } })
      .then((server) => say(`Signed in to ${server.url}.`))
      .catch((error: unknown) => say(inWords(error)))
      .finally(() => {
        taken.current = false;
        void client.invalidateQueries({ queryKey: ["mcp-servers"] });
      });
  }, [answered, client, say, setSearch]);

  const signIn = async (name: string): Promise<void> => {
    setBusy(name);
    try {
      const begun = await post("/api/mcp-servers/{name}/sign-in", { path: { name } });
      window.location.assign(begun.url);
    } catch (error) {
      say(inWords(error));
      setBusy(null);
    }
  };
  return (
    <Section title="MCP servers" about="MCP servers that need a sign-in. Their tokens are stored encrypted and renewed.">
      <Loaded query={servers}>
        {(all) =>
          all.length === 0 ? (
            <Empty title="No MCP server needs a sign-in." icon={<PlugZap size={28} aria-hidden />}>
              <p>
                Add <code>sign_in</code> to an MCP server in the definition of an agent.
              </p>
            </Empty>
          ) : (
            <ul className={css.rows} aria-label="MCP servers">
              {all.map((each) => (
                <li key={`${each.name} ${each.url}`} className={css.row}>
                  <span className={css.words}>
                    <code className={css.keyName}>{each.url}</code>
                    <span className={css.facts}>
                      <span>{each.name}</span>
                      <span>used by {each.agents.join(", ")}</span>
                    </span>
                  </span>
                  {each.signed_in_at ? (
                    <Badge tone="good">
                      signed in <Time value={each.signed_in_at} form="ago" />
                    </Badge>
                  ) : (
                    <Badge tone="warn">not signed in</Badge>
                  )}
                  <Button small busy={busy === each.name} onClick={() => void signIn(each.name)}>
                    {each.signed_in_at ? "Sign in again" : "Sign in"}
                  </Button>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Section>
  );
}
