import { Moon, Pause, PowerOff } from "lucide-react";
import { type ReactNode, useEffect, useState } from "react";
import { Link } from "wouter";
import type { Schemas } from "../denizen/api";
import { useLive } from "../denizen/live";
import { cost, costOf, percent, short, whole } from "../ui/amounts";
import { Gauge } from "../ui/Gauge";
import { Loaded, Skeleton } from "../ui/States";
import { Time } from "../ui/Time";
import { useMindOf, useOpenEntries } from "./asking";
import css from "./mind.module.css";
import { CycleRow, Shown, StepView } from "./parts";
import { stepsOf } from "./transcript";
import { useMind } from "./watch";
import type { OpenCycle } from "./watching";
import { duration } from "./words";

/** What it is doing at this moment, step by step, and what it did last. */
export function NowTab({ at }: { at: string }): ReactNode {
  const { agent, watched } = useMind();
  const mind = useMindOf(agent.id);
  // All at once: what comes later would move what is there.
  if (mind.isPending && !watched.open) return <Skeleton lines={10} />;
  return (
    <>
      {watched.alerts.map((text) => (
        <p key={text} className={css.alert} role="alert">
          {text}
        </p>
      ))}
      {watched.open ? <Thinking open={watched.open} /> : <Loaded query={mind}>{(found) => <Resting mind={found} at={at} />}</Loaded>}
      {mind.data && <Used mind={mind.data} />}
      <section className={css.section} aria-label="Recent cycles">
        <div className={css.sectionHead}>
          <h2>Recent cycles</h2>
          <Link href={`${at}/life`}>Full history</Link>
        </div>
        <Loaded query={mind} lines={8}>
          {(found) =>
            found.last_cycles.length === 0 ? (
              <p className={css.nothing}>No cycles yet.</p>
            ) : (
              <div className={css.timeline}>
                {found.last_cycles.map((cycle) => (
                  <CycleRow key={cycle.id} cycle={cycle} at={at} />
                ))}
              </div>
            )
          }
        </Loaded>
      </section>
    </>
  );
}

function Thinking({ open }: { open: OpenCycle }): ReactNode {
  const { agent } = useMind();
  const entries = useOpenEntries(agent.id, open.id);
  const now = useSecond();
  const took = duration(open.startedAt, new Date(Math.max(now, Date.parse(open.startedAt))).toISOString());
  return (
    <section className={css.present} aria-label="Current activity">
      <div className={css.sectionHead}>
        <h2>{open.state === "paused" ? "Waiting for an answer" : "Thinking"}</h2>
        <p className={css.meta}>
          <span>{took}</span>
          <span>
            {open.events} {open.events === 1 ? "event" : "events"} taken
          </span>
          <span>
            {open.steps} {open.steps === 1 ? "step" : "steps"}
          </span>
          <span>
            {short(open.inputTokens)} read, {short(open.outputTokens)} written
          </span>
        </p>
      </div>
      {open.error && (
        <p className={css.alert} role="alert">
          It failed and will continue from its last step: {open.error}
        </p>
      )}
      {entries.data ? <Steps entries={entries.data} open={open} /> : <Skeleton lines={4} />}
      {open.state === "open" && <Moment />}
    </section>
  );
}

function Steps({ entries, open }: { entries: Schemas["LogEntry"][]; open: OpenCycle }): ReactNode {
  const { steps, rest } = stepsOf(entries);
  return (
    <ol className={css.steps}>
      {steps.map((step) => (
        <StepView
          key={step.step}
          step={{ ...step, model: open.models[step.step] ?? null }}
          open
          states={(position) => open.calls[`${step.step}.${position}`]}
        />
      ))}
      {rest.length > 0 && (
        <li className={css.step}>
          {rest.map((each, index) => (
            <Shown key={index} kind={each.kind} text={each.text} open />
          ))}
        </li>
      )}
    </ol>
  );
}

/** This very moment: what it writes, which tool it uses, or that it thinks. */
function Moment(): ReactNode {
  const { watched } = useMind();
  const { writing, doing } = watched;
  const space = useLive((state) => (writing ? state.spaces[writing.space]?.info.name : undefined));
  return (
    <div className={css.moment}>
      <p className={css.momentHead}>
        <span className={css.pulse} aria-hidden />
        {writing ? `Writing${space ? ` in ${space}` : ""}` : doing ? `Using ${doing}` : "Thinking…"}
      </p>
      {writing && <p className={css.plainWords}>{writing.text}</p>}
    </div>
  );
}

function Resting({ mind, at }: { mind: Schemas["MindOut"]; at: string }): ReactNode {
  const { agent, watched } = useMind();
  const status = watched.status ?? mind.status;
  const waiting = mind.inbox.reduce((sum, lane) => sum + lane.waiting, 0);
  const next = mind.plans[0];
  const last = mind.last_cycles[0]?.ended_at;
  const icon = status === "suspended" ? <PowerOff size={20} /> : status === "paused" ? <Pause size={20} /> : <Moon size={20} />;
  return (
    <section className={css.present} aria-label="Current activity">
      <div className={css.restingHead}>
        <span className={css.restingIcon} aria-hidden>
          {icon}
        </span>
        <h2>{status === "suspended" ? `${agent.name} is suspended.` : status === "alive" ? `${agent.name} is working.` : `${agent.name} is asleep.`}</h2>
      </div>
      <ul className={css.restingFacts}>
        {mind.resting && (
          <li>
            Budget used up
            {mind.resting.until ? (
              <>
                {" "}
                until <Time value={mind.resting.until} form="near" />
              </>
            ) : (
              " until it is raised"
            )}
            .
          </li>
        )}
        {watched.ended && !watched.ended.number && <li>{watched.ended.outcome === "skipped" ? `Skipped: ${watched.ended.text || "no reason given"}` : `Failed: ${watched.ended.text}`}</li>}
        <li>{last ? <>Last active <Time value={last} form="ago" />.</> : "No cycles yet."}</li>
        {waiting > 0 && (
          <li>
            <Link href={`${at}/inbox`}>
              {waiting} {waiting === 1 ? "event waits" : "events wait"}
            </Link>{" "}
            in its inbox.
          </li>
        )}
        {mind.dead.length > 0 && (
          <li>
            <Link href={`${at}/inbox`}>
              {mind.dead.length} {mind.dead.length === 1 ? "event was" : "events were"}
            </Link>{" "}
            failed.
          </li>
        )}
        {next && (
          <li>
            <Link href={`${at}/plans`}>{next.name || (next.kind === "heartbeat" ? "Its heartbeat" : "A timer")}</Link> wakes it <Time value={next.next_run} form="ago" />.
          </li>
        )}
      </ul>
    </section>
  );
}

function Used({ mind }: { mind: Schemas["MindOut"] }): ReactNode {
  const limit = mind.budget?.dollars_per_day;
  return (
    <section className={css.used} aria-label="Usage">
      <Figures title="Today" used={mind.today} />
      <Figures title="Seven days" used={mind.seven_days} />
      {limit ? <Gauge label="Today's budget" value={mind.today.dollars} max={limit} text={costOf(mind.today, limit)} /> : null}
    </section>
  );
}

function Figures({ title, used }: { title: string; used: Schemas["UsedOut"] }): ReactNode {
  return (
    <dl className={css.figures}>
      <dt className={css.figuresTitle}>{title}</dt>
      <dd>
        <strong>{cost(used)}</strong>
        <span className={css.meta}>
          <span>{whole(used.calls)} calls</span>
          <span>{short(used.input_tokens)} read</span>
          <span>{short(used.output_tokens)} written</span>
          {used.cached_share ? <span>{percent(used.cached_share)} cached</span> : null}
        </span>
      </dd>
    </dl>
  );
}

function useSecond(): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return now;
}
