import { useQueryClient } from "@tanstack/react-query";
import { lazy, type ReactNode, Suspense, useEffect, useMemo } from "react";
import { Redirect, useLocation } from "wouter";
import { ApiError } from "../denizen/api";
import { useAgent, useIsAdmin, usePresence } from "../denizen/hooks";
import { Page } from "../shell/Page";
import { whole } from "../ui/amounts";
import { Avatar, STATUS_WORDS } from "../ui/Avatar";
import { Badge } from "../ui/Badge";
import { Empty, Loaded, Skeleton } from "../ui/States";
import { LinkTabs } from "../ui/Tabs";
import { Time } from "../ui/Time";
import { CyclePage } from "./CyclePage";
import { InboxTab } from "./InboxTab";
import { LifeTab } from "./LifeTab";
import css from "./mind.module.css";
import { NowTab } from "./NowTab";
import { PlansTab } from "./PlansTab";
import { RecallTab } from "./RecallTab";
import { SettingsTab } from "./SettingsTab";
import { type AgentDetail, MindContext, useWatching } from "./watch";
import type { Watched } from "./watching";
import { WindowTab } from "./WindowTab";

const AgentMemories = lazy(() => import("../memory/AgentMemories"));
const StanceTab = lazy(() => import("../reflection/StanceTab"));

const TABS = [
  ["now", "Now"],
  ["life", "History"],
  ["window", "Window"],
  ["inbox", "Inbox"],
  ["plans", "Plans"],
  ["recall", "Recall"],
  ["memories", "Memories"],
  ["stance", "Stance"],
  ["settings", "Settings"],
] as const;
type TabName = (typeof TABS)[number][0];

/** The mind of an agent: for admins whole, for others what everyone may know. */
export default function MindPage({ id }: { id: string }): ReactNode {
  const agent = useAgent(id);
  const admin = useIsAdmin();
  if (agent.data === undefined) {
    const gone = agent.error instanceof ApiError && agent.error.status === 404;
    return (
      <Page title="Agent">
        {gone ? (
          <Empty title="Agent not found.">
            <p>It may have been deleted, or the link is wrong.</p>
          </Empty>
        ) : (
          <Loaded query={agent} lines={10}>
            {() => null}
          </Loaded>
        )}
      </Page>
    );
  }
  return admin ? <Inside key={agent.data.id} agent={agent.data} /> : <Outside agent={agent.data} />;
}

function Inside({ agent }: { agent: AgentDetail }): ReactNode {
  const [path] = useLocation();
  const watched = useWatching(agent.id, agent.cycles);
  useFreshness(agent.id, watched);
  const looked = useMemo(() => ({ agent, watched }), [agent, watched]);
  const [, , ref, name = "", part] = path.split("/");
  const tab = TABS.find(([each]) => each === name)?.[0];
  if (tab === undefined) return <Redirect to={`/agents/${ref}/now`} replace />;
  return (
    <MindContext value={looked}>
      <Page title={agent.name} before={<Avatar name={agent.name} id={agent.id} kind="agent" />} below={<Head agent={agent} watched={watched} tab={tab} at={`/agents/${ref}`} />}>
        <Suspense fallback={<Skeleton lines={10} />}>
          <Tab agent={agent} tab={tab} part={part} at={`/agents/${ref}`} />
        </Suspense>
      </Page>
    </MindContext>
  );
}

function Tab({ agent, tab, part, at }: { agent: AgentDetail; tab: TabName; part: string | undefined; at: string }): ReactNode {
  switch (tab) {
    case "now":
      return <NowTab at={at} />;
    case "life":
      return part === undefined ? <LifeTab at={at} /> : <CyclePage key={part} number={Number(part)} at={at} />;
    case "window":
      return <WindowTab at={at} />;
    case "inbox":
      return <InboxTab />;
    case "plans":
      return <PlansTab />;
    case "recall":
      return <RecallTab at={at} />;
    case "memories":
      return <AgentMemories agent={agent.id} name={agent.name} />;
    case "stance":
      return <StanceTab agent={agent.id} name={agent.name} reflection={agent.definition?.["reflection"]} space={part} at={at} />;
    case "settings":
      return <SettingsTab />;
  }
}

/** What was asked for is asked for again when the stream tells that it is another by now. */
function useFreshness(agent: string, { changes, endings, stances }: Watched): void {
  const client = useQueryClient();
  useEffect(() => {
    if (changes === 0) return;
    void client.invalidateQueries({ queryKey: ["agents", agent, "now"] });
    void client.invalidateQueries({ queryKey: ["agents", agent, "inbox"] });
  }, [client, agent, changes]);
  useEffect(() => {
    if (endings > 0) void client.invalidateQueries({ queryKey: ["agents", agent] });
  }, [client, agent, endings]);
  useEffect(() => {
    if (stances === 0) return;
    void client.invalidateQueries({ queryKey: ["stance", agent] });
    void client.invalidateQueries({ queryKey: ["agents", agent, "mind"] });
  }, [client, agent, stances]);
}

function Head({ agent, watched, tab, at }: { agent: AgentDetail; watched: Watched; tab: TabName; at: string }): ReactNode {
  const status = watched.status ?? agent.status;
  return (
    <div className={css.head}>
      <p className={css.headline}>
        <Badge tone={status === "alive" ? "good" : status === "paused" || status === "suspended" ? "warn" : "plain"}>
          <span role="status">{watched.doing ? `using ${watched.doing}` : STATUS_WORDS[status]}</span>
        </Badge>
        <span>@{agent.handle}</span>
        <span>{agent.model === "default" ? "default model" : agent.model}</span>
        <span>
          {whole(agent.cycles)} {agent.cycles === 1 ? "cycle" : "cycles"}
        </span>
      </p>
      <LinkTabs label={`Mind of ${agent.name}`} tabs={TABS.map(([name, label]) => ({ href: `${at}/${name}`, label }))} current={`${at}/${tab}`} />
    </div>
  );
}

/** What everyone may know. Its mind holds what others told it in private. */
function Outside({ agent }: { agent: AgentDetail }): ReactNode {
  const presence = usePresence(agent.id);
  const status = presence?.status ?? agent.status;
  return (
    <Page title={agent.name} before={<Avatar name={agent.name} id={agent.id} kind="agent" status={status} />}>
      <section className={css.outside}>
        <p className={css.lead}>{agent.purpose || "No purpose written yet."}</p>
        <dl className={css.facts}>
          <div>
            <dt>Now</dt>
            <dd>{presence?.doing ? `using ${presence.doing}` : STATUS_WORDS[status]}</dd>
          </div>
          <div>
            <dt>Handle</dt>
            <dd>@{agent.handle}</dd>
          </div>
          <div>
            <dt>Model</dt>
            <dd>{agent.model}</dd>
          </div>
          <div>
            <dt>Lifetime</dt>
            <dd>{whole(agent.cycles)} cycles</dd>
          </div>
          <div>
            <dt>Created</dt>
            <dd>
              <Time value={agent.created_at} />
            </dd>
          </div>
        </dl>
        <p className={css.aside}>Only admins can see its mind, because it contains private conversations. Mention @{agent.handle} in a space to talk to it.</p>
      </section>
    </Page>
  );
}
