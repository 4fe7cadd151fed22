import { useQuery } from "@tanstack/react-query";
import { EllipsisVertical, MessageCircle, Pause, Play, Plus, ScanEye } from "lucide-react";
import { type ReactNode } from "react";
import { Link, useLocation } from "wouter";
import { get, post, type Schemas } from "../denizen/api";
import { useAgents, useAgentsChanged, useIsAdmin } from "../denizen/hooks";
import { useStore } from "../denizen/live";
import { Page } from "../shell/Page";
import { Avatar, STATUS_WORDS } from "../ui/Avatar";
import { Badge, type Tone } from "../ui/Badge";
import { buttonClass } from "../ui/Button";
import { classes } from "../ui/classes";
import { Menu, type MenuItem } from "../ui/Menu";
import { Empty, Loaded } from "../ui/States";
import { Time } from "../ui/Time";
import { useToast } from "../ui/Toast";
import css from "./agents.module.css";
import { cost, daysAgo, dollars, monthStart } from "../ui/amounts";
import { useActWithToast } from "../ui/useAct";
import { useTalk } from "./talking";

type Listed = Schemas["ListedAgent"];

/** Everyone who lives here. */
export default function AgentsPage(): ReactNode {
  const agents = useAgents();
  const admin = useIsAdmin();
  const costs = useCosts(admin);
  const make = (
    <Link href="/agents/new" className={buttonClass("primary", true)}>
      <Plus size={16} /> New agent
    </Link>
  );
  return (
    <Page title="Agents" actions={admin && make}>
      <Loaded query={agents}>
        {(all) =>
          all.length === 0 ? (
            <Empty title="No agents yet.">{admin && <p>Create the first one: it takes less than a minute.</p>}</Empty>
          ) : (
            <ul className={css.list} aria-label="Agents">
              {all.map((agent) => (
                <Row key={agent.id} agent={agent as Listed} admin={admin} cost={admin ? (costs.data?.get(agent.id) ?? (costs.data ? dollars(0) : null)) : undefined} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </Page>
  );
}

const TONES: Partial<Record<Listed["status"], Tone>> = { alive: "good", paused: "warn", suspended: "warn", dead: "bad" };

/** `cost` is undefined for whoever may not know it, null before it is known. */
function Row({ agent, admin, cost }: { agent: Listed; admin: boolean; cost: string | null | undefined }): ReactNode {
  const talk = useTalk();
  const [, go] = useLocation();
  const act = useSuspending(agent);
  const items: MenuItem[] = [
    { label: `Talk to ${agent.name}`, icon: <MessageCircle size={16} />, onSelect: () => void talk(agent.id) },
    ...(admin ? [{ label: "Open mind", icon: <ScanEye size={16} />, onSelect: () => go(`/agents/${agent.id}/now`) }] : []),
    ...(!admin
      ? []
      : agent.status === "suspended"
        ? [{ label: "Resume", icon: <Play size={16} />, onSelect: () => void act("resume") }]
        : [{ label: "Suspend", icon: <Pause size={16} />, onSelect: () => void act("suspend") }]),
  ];
  return (
    <li className={css.row}>
      <Avatar name={agent.name} id={agent.id} kind="agent" status={agent.status} />
      <span className={css.words}>
        <span className={css.name}>
          <Link href={`/agents/${agent.id}/now`} className={css.link} data-row>
            {agent.name}
          </Link>
          <span className={css.handle}>@{agent.handle}</span>
          {agent.status !== "sleeping" && <Badge tone={TONES[agent.status]}>{STATUS_WORDS[agent.status]}</Badge>}
        </span>
        {agent.purpose && <span className={css.about}>{agent.purpose}</span>}
        <span className={css.facts}>
          <span>{agent.model === "default" ? "default model" : agent.model}</span>
          {agent.last_cycle_at ? (
            <span>
              last active <Time value={agent.last_cycle_at} form="ago" />
            </span>
          ) : (
            agent.status === "sleeping" && <span>never active</span>
          )}
          {cost !== undefined && <span className={classes(cost === null && css.unknown)}>{`${cost ?? dollars(0)} this month`}</span>}
        </span>
      </span>
      <Menu label={`Actions for ${agent.name}`} icon={<EllipsisVertical size={18} />} items={items} />
    </li>
  );
}

function useSuspending(agent: Listed): (what: "suspend" | "resume") => Promise<void> {
  const changed = useAgentsChanged();
  const store = useStore();
  const say = useToast();
  const { busy, run } = useActWithToast();
  return async (what) => {
    if (busy) return;
    await run(async () => {
      const path = { path: { agent_id: agent.id } };
      const now = what === "suspend" ? await post("/api/agents/{agent_id}/suspend", path) : await post("/api/agents/{agent_id}/resume", path);
      store.dispatch({ type: "agent.status", agent: agent.id, status: now.status, epoch: null, doing: null });
      say(what === "suspend" ? `${agent.name} is suspended. Messages are kept until you resume it.` : `${agent.name} resumed.`);
      await changed();
    });
  };
}

/** What each agent has cost since the first of the month. */
function useCosts(wanted: boolean) {
  return useQuery({
    queryKey: ["usage", "month", "agents"],
    enabled: wanted,
    queryFn: async ({ signal }) => {
      const told = await get("/api/usage", { query: { since: monthStart(), until: daysAgo(0), by: "agent", limit: 50 }, signal });
      return new Map(told.groups.map((each) => [each.key, cost(each)]));
    },
    staleTime: 60_000,
  });
}
