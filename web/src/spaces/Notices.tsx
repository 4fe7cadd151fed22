import { useQueries } from "@tanstack/react-query";
import { Moon } from "lucide-react";
import type { ReactNode } from "react";
import { get, type Schemas } from "../denizen/api";
import { useLive } from "../denizen/live";
import type { SpaceState } from "../denizen/store";
import { Time } from "../ui/Time";
import css from "./conversation.module.css";

/** Why agents here do not answer: their budget is used up, or someone has suspended them. */
export function Notices({ space }: { space: SpaceState }): ReactNode {
  const presence = useLive((state) => state.presence);
  const suspended = space.info.members.filter((each) => presence[each.id]?.status === "suspended");
  const details = useQueries({
    queries: suspended.map((each) => ({
      // Asked when it has come to rest: what was known of it before does not say why.
      queryKey: ["agents", each.id, "suspended"],
      queryFn: () => get("/api/agents/{agent_id}", { path: { agent_id: each.id } }),
      gcTime: 0,
    })),
  });
  return details.map(({ data }) => data && <Notice key={data.id} agent={data} />);
}

function Notice({ agent }: { agent: Schemas["AgentDetail"] }): ReactNode {
  const { resting } = agent;
  return (
    <div className={css.notice}>
      <Moon size={15} aria-hidden />
      {resting === null ? (
        <span>{agent.name} is suspended: it reads this when an admin lets it go on.</span>
      ) : (
        <span>
          {agent.name} has used up {resting.scope.startsWith("organization") ? "the budget of all agents" : "its budget"} and rests{" "}
          {resting.until ? (
            <>
              until <Time value={resting.until} />.
            </>
          ) : (
            "until the budget is raised."
          )}
        </span>
      )}
    </div>
  );
}
