import { useMutation, useQueries } from "@tanstack/react-query";
import { Hourglass, MessageCircleQuestion, Moon, RotateCw, Settings2, TriangleAlert } from "lucide-react";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { get, inWords, post, type Schemas } from "../denizen/api";
import { useMe } from "../denizen/hooks";
import { useLive } from "../denizen/live";
import type { SpaceState } from "../denizen/store";
import { Button, buttonClass } from "../ui/Button";
import { Time } from "../ui/Time";
import { useToast } from "../ui/Toast";
import css from "./conversation.module.css";

type Status = Schemas["StatusOut"];

/** Why agents have not answered here, and what one can do about it; and which of them rest. */
export function Notices({ space }: { space: SpaceState }): ReactNode {
  const { statuses } = space.info;
  return (
    <>
      {statuses.map((each) => (
        <StatusNotice key={`${each.agent_id} ${each.cause}`} space={space.info.id} status={each} />
      ))}
      {space.info.stopped && <Stopped space={space} />}
      <Resting space={space} told={statuses.map((each) => each.agent_id)} />
    </>
  );
}

/** Agents have answered each other for long enough: a person says whether they go on. */
function Stopped({ space }: { space: SpaceState }): ReactNode {
  return (
    <div className={css.notice} role="status">
      <Hourglass size={15} aria-hidden />
      <span className={css.noticeText}>
        The agents have stopped answering each other after {space.info.agent_run_limit} messages without a person. They continue when you write, or when you allow it.
      </span>
      <Act label="Let them continue" icon={<RotateCw size={14} />} act={() => post("/api/spaces/{space_id}/continue", { path: { space_id: space.info.id } })} />
    </div>
  );
}

function StatusNotice({ space, status }: { space: string; status: Status }): ReactNode {
  const queued = status.cause === "queued";
  return (
    <div className={css.notice} role="status" data-cause={status.cause}>
      {queued ? <Hourglass size={15} aria-hidden /> : <TriangleAlert size={15} aria-hidden />}
      <span className={css.noticeText}>
        {status.text}
        {status.retry_at && (
          <>
            {" "}
            Next try: <Time value={status.retry_at} form="near" />.
          </>
        )}
      </span>
      <Actions space={space} status={status} />
    </div>
  );
}

/** What the person can do: ask the agent, or open the place where the cause is mended. */
function Actions({ space, status }: { space: string; status: Status }): ReactNode {
  const me = useMe();
  const admin = me.role === "admin" || me.role === "owner";
  if (status.agent_id === null) return <PanelActions panel={space} status={status} admin={admin} />;
  const path = { agent_id: status.agent_id };
  return status.actions.map((action) => {
    switch (action) {
      case "try_again":
        return <Act key={action} label="Try again" icon={<RotateCw size={14} />} act={() => post("/api/agents/{agent_id}/try-again", { path, body: { space } })} />;
      case "ask":
        return (
          <Act
            key={action}
            label="Ask for an answer"
            icon={<MessageCircleQuestion size={14} />}
            act={() => post("/api/spaces/{space_id}/agents/{agent_id}/ask-for-answer", { path: { ...path, space_id: space } })}
          />
        );
      case "resume":
        return admin && <Act key={action} label="Resume" icon={<RotateCw size={14} />} act={() => post("/api/agents/{agent_id}/resume", { path })} />;
      case "settings":
        return admin && <Open key={action} to={status.cause === "key" ? "/admin/keys" : `/agents/${status.agent_id}/settings`} />;
      case "budget":
        return admin && <Open key={action} to="/admin/budgets" />;
    }
  });
}

/** The same where nobody in a panel could answer. Its settings are on the page. */
function PanelActions({ panel, status, admin }: { panel: string; status: Status; admin: boolean }): ReactNode {
  const path = { panel_id: panel, round_id: status.round_id ?? "" };
  return (
    <>
      <Act label="Try again" icon={<RotateCw size={14} />} act={() => post("/api/panels/{panel_id}/rounds/{round_id}/retry", { path, body: {} })} />
      {admin && status.cause === "key" && <Open to="/admin/keys" />}
      {admin && status.cause === "budget" && <Open to="/admin/budgets" />}
    </>
  );
}

function Act({ label, icon, act }: { label: string; icon: ReactNode; act: () => Promise<unknown> }): ReactNode {
  const say = useToast();
  const acting = useMutation({ mutationFn: act, onError: (error) => say(inWords(error)) });
  return (
    <Button small icon={icon} busy={acting.isPending} onClick={() => acting.mutate()}>
      {label}
    </Button>
  );
}

function Open({ to }: { to: string }): ReactNode {
  return (
    <Link href={to} className={buttonClass("plain", true)}>
      <Settings2 size={14} aria-hidden />
      Open settings
    </Link>
  );
}

const USED_UP: Record<string, string> = { agent: "its budget", organization: "the organization's budget", server: "the daily limit of this server" };

/** Agents that are suspended, or whose budget is used up, where nobody has waited for them yet. */
function Resting({ space, told }: { space: SpaceState; told: (string | null)[] }): ReactNode {
  const presence = useLive((state) => state.presence);
  const suspended = space.info.members.filter((each) => presence[each.id]?.status === "suspended" && !told.includes(each.id));
  const details = useQueries({
    queries: suspended.map((each) => ({
      // Asked when it has come to rest: what was known of it before does not say why.
      queryKey: ["agents", each.id, "suspended"],
      queryFn: () => get("/api/agents/{agent_id}", { path: { agent_id: each.id } }),
      gcTime: 0,
    })),
  });
  return details.map(({ data }) => data && <RestingNotice key={data.id} agent={data} />);
}

function RestingNotice({ agent }: { agent: Schemas["AgentDetail"] }): ReactNode {
  const { resting } = agent;
  return (
    <div className={css.notice}>
      <Moon size={15} aria-hidden />
      {resting === null ? (
        <span>{agent.name} is suspended. It reads this when an admin resumes it.</span>
      ) : (
        <span>
          {agent.name} is paused because {USED_UP[resting.scope.split(":")[0]!] ?? "a budget"} is used up,{" "}
          {resting.until ? (
            <>
              until <Time value={resting.until} form="near" />.
            </>
          ) : (
            "until the budget is raised."
          )}
        </span>
      )}
    </div>
  );
}
