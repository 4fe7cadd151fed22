import { useQuery, useQueryClient } from "@tanstack/react-query";
import { CircleCheck, TriangleAlert } from "lucide-react";
import { type ReactNode, useState } from "react";
import { Link } from "wouter";
import { get, post, type Schemas } from "../denizen/api";
import { Badge } from "../ui/Badge";
import { Button } from "../ui/Button";
import { classes } from "../ui/classes";
import { Fault } from "../ui/Confirm";
import { Loaded } from "../ui/States";
import { Time } from "../ui/Time";
import { useAct } from "../ui/useAct";
import css from "./admin.module.css";
import { Section } from "./parts";
import { base } from "../denizen/base";

type Told = Schemas["HealthOut"];
const FEW = 20;

/** How the house is, looked at again every few seconds. */
export default function Health(): ReactNode {
  const health = useQuery({ queryKey: ["health"], queryFn: ({ signal }) => get("/api/health", { signal }), refetchInterval: 10_000 });
  return (
    <Loaded query={health} lines={10}>
      {(told) => (
        <>
          <Alerts told={told} />
          <AgentsHealth told={told} />
          {told.dead.length > 0 && <Troubles title="Failed events" about="These events failed five times. They wait until a person retries them." state="dead" troubles={told.dead} />}
          {told.late.length > 0 && <Troubles title="Waiting" about="These agents have had work waiting for more than ten minutes." state="pending" troubles={told.late} />}
          <Section title="Instances" about="Server processes that run agents. They share one database and take over from each other.">
            {told.instances.length === 0 ? (
              <p className={css.faint}>No instance reported in the last 30 seconds.</p>
            ) : (
              <ul className={css.rows} aria-label="Instances">
                {told.instances.map((each) => (
                  <li key={each.id} className={css.row}>
                    <span className={css.words}>
                      <code className={css.keyName}>{each.id}</code>
                      <span className={css.facts}>
                        <span>{each.agents === 1 ? "1 agent awake" : `${each.agents} agents awake`}</span>
                        <span>
                          seen <Time value={each.seen_at} form="ago" />
                        </span>
                      </span>
                    </span>
                    {each.answers && <Badge tone="accent">answers you</Badge>}
                  </li>
                ))}
              </ul>
            )}
          </Section>
          <p className={css.faint}>
            Denizen {told.version}. Prometheus metrics: <a href={`${base}/metrics`}>/metrics</a>.
          </p>
        </>
      )}
    </Loaded>
  );
}

function Alerts({ told }: { told: Told }): ReactNode {
  const well = told.alerts.length === 0;
  return (
    <section className={css.alerts} data-well={well} aria-label="Alerts" role="status">
      {well ? (
        <p>
          <CircleCheck size={20} aria-hidden /> All good: database and bus respond, no failed events, nothing waits too long.
        </p>
      ) : (
        told.alerts.map((each) => (
          <p key={each.code}>
            <TriangleAlert size={20} aria-hidden /> {each.text}
          </p>
        ))
      )}
    </section>
  );
}

/** Can each agent think, how long people have waited for it, what it set aside, and what to do. */
function AgentsHealth({ told }: { told: Told }): ReactNode {
  const [most, setMost] = useState(FEW);
  const able = told.agents.filter((each) => each.can_think).length;
  const all = told.agents_checked === told.agents.length;
  const about = all ? `${able} of ${told.agents.length} can run now.` : `Checked ${told.agents_checked} agents; the ones that need attention come first.`;
  return (
    <Section title="Agents" about={told.agents.length === 0 ? "No agents yet." : about}>
      <ul className={css.rows} aria-label="Agents">
        {told.agents.slice(0, most).map((each) => (
          <AgentHealth key={each.agent_id} agent={each} />
        ))}
      </ul>
      {told.agents.length > most && (
        <Button small onClick={() => setMost(most + 50)}>
          Show more
        </Button>
      )}
    </Section>
  );
}

function AgentHealth({ agent }: { agent: Told["agents"][number] }): ReactNode {
  const client = useQueryClient();
  const act = useAct();
  const retryable = agent.dead > 0 || agent.trouble?.actions.includes("try_again");
  const again = (): void =>
    void act.run(async () => {
      await post("/api/agents/{agent_id}/try-again", { path: { agent_id: agent.agent_id }, body: { space: null } });
      await client.invalidateQueries({ queryKey: ["health"] });
    });
  return (
    <li className={classes(css.row, css.wrapping)}>
      <span className={css.words}>
        <Link href={`/agents/${agent.agent_id}/${agent.trouble?.actions.includes("settings") ? "settings" : "now"}`} className={css.name}>
          {agent.name}
        </Link>
        <span className={css.facts}>
          <span>@{agent.handle}</span>
          {agent.waiting_since && (
            <span>
              {agent.waiting === 1 ? "1 message waits" : `${agent.waiting} messages wait`}, the oldest came <Time value={agent.waiting_since} form="ago" />
            </span>
          )}
          {agent.dead > 0 && <span>{agent.dead === 1 ? "1 message set aside" : `${agent.dead} messages set aside`}</span>}
          {agent.trouble?.retry_at && (
            <span>
              next try <Time value={agent.trouble.retry_at} form="short" />
            </span>
          )}
        </span>
        {agent.trouble && <span className={css.remedy}>{agent.trouble.text}</span>}
        <Fault error={act.error} />
      </span>
      <Badge tone={agent.needs_a_person ? "bad" : agent.can_think ? "good" : "warn"}>{!agent.can_think ? "Cannot run" : agent.needs_a_person ? "Needs attention" : "Can run"}</Badge>
      {retryable && (
        <Button small busy={act.busy} aria-label={`Have ${agent.name} try again`} onClick={again}>
          Try again
        </Button>
      )}
    </li>
  );
}

function Troubles({ title, about, troubles, state }: { title: string; about: string; troubles: Told["dead"]; state: "dead" | "pending" }): ReactNode {
  return (
    <Section title={title} about={about}>
      <ul className={css.rows} aria-label={title}>
        {troubles.map((each) => (
          <li key={each.agent_id} className={css.row}>
            <span className={css.words}>
              <Link href={`/agents/${each.agent_id}/inbox?state=${state}`} className={css.name}>
                {each.name}
              </Link>
              <span className={css.faint}>
                @{each.handle} · the oldest came <Time value={each.since} form="ago" />
              </span>
            </span>
            <Badge tone={state === "dead" ? "bad" : "warn"}>{each.events === 1 ? "1 event" : `${each.events} events`}</Badge>
          </li>
        ))}
      </ul>
    </Section>
  );
}
