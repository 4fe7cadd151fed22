import { useQuery } from "@tanstack/react-query";
import { CircleCheck, TriangleAlert } from "lucide-react";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { get, type Schemas } from "../denizen/api";
import { Badge } from "../ui/Badge";
import { Loaded } from "../ui/States";
import { Time } from "../ui/Time";
import css from "./admin.module.css";
import { Section } from "./parts";

type Told = Schemas["HealthOut"];

/** How the house is, looked at again every few seconds. */
export default function Health(): ReactNode {
  const health = useQuery({ queryKey: ["health"], queryFn: ({ signal }) => get("/api/health", { signal }), refetchInterval: 10_000 });
  return (
    <Loaded query={health} lines={10}>
      {(told) => (
        <>
          <Alerts told={told} />
          {told.dead.length > 0 && <Troubles title="Given up" about="After five attempts an event is left alone until a person looks at it." state="dead" troubles={told.dead} />}
          {told.late.length > 0 && <Troubles title="Waiting" about="These agents could think, and have not for more than ten minutes." state="pending" troubles={told.late} />}
          <Section title="Instances" about="Processes that think for the agents. Several share one database, and take over from each other.">
            {told.instances.length === 0 ? (
              <p className={css.faint}>None has been seen in the last half minute.</p>
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
            Denizen {told.version}. Numbers for Prometheus are at <a href="/metrics">/metrics</a>.
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
          <CircleCheck size={20} aria-hidden /> All is well: the database and the bus answer, nothing was given up, nothing waits too long.
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
