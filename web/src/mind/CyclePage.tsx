import { ArrowLeft, ArrowRight, GitFork, Repeat } from "lucide-react";
import { type ReactNode, useState } from "react";
import { Link } from "wouter";
import { ApiError, type Schemas } from "../denizen/api";
import { dollars, percent, whole } from "../ui/amounts";
import { Badge } from "../ui/Badge";
import { Button } from "../ui/Button";
import { Empty, Loaded } from "../ui/States";
import { Time } from "../ui/Time";
import { useCycle, useStep } from "./asking";
import { ForkDialog } from "./ForkDialog";
import css from "./mind.module.css";
import { Fold, OutcomeBadge, Shown, StepView } from "./parts";
import { PrivateCycle } from "./OpenSpace";
import { Rethink } from "./Rethink";
import { ExactRequest } from "./ExactRequest";
import { useMind } from "./watch";
import { company, duration, stopped } from "./words";

/** One cycle: what came in, every step, what it used, why it stopped; and what else might have been. */
export function CyclePage({ number, at }: { number: number; at: string }): ReactNode {
  const { agent } = useMind();
  const cycle = useCycle(agent.id, number);
  if (!Number.isInteger(number) || (cycle.error instanceof ApiError && cycle.error.status === 404)) {
    return (
      <Empty title={`Cycle ${number} not found.`}>
        <p>
          <Link href={`${at}/life`}>Back to History</Link>
        </p>
      </Empty>
    );
  }
  return (
    <Loaded query={cycle} lines={14}>
      {(found) => <Told cycle={found} at={at} />}
    </Loaded>
  );
}

function Told({ cycle, at }: { cycle: Schemas["CycleDetail"]; at: string }): ReactNode {
  const { agent } = useMind();
  const [rethinking, setRethinking] = useState(false);
  const [forking, setForking] = useState(false);
  const number = cycle.number!;
  return (
    <article className={css.cycle}>
      <nav className={css.steppers} aria-label="Other cycles">
        <Link href={`${at}/life`}>
          <ArrowLeft size={15} aria-hidden /> History
        </Link>
        <span className={css.spring} />
        {number > 1 && <Link href={`${at}/life/${number - 1}`}>Before</Link>}
        {number < agent.cycles && (
          <Link href={`${at}/life/${number + 1}`}>
            After <ArrowRight size={15} aria-hidden />
          </Link>
        )}
      </nav>
      <header className={css.cycleHead}>
        <p className={css.meta}>
          <span>Cycle {whole(number)}</span>
          {cycle.ended_at && <Time value={cycle.ended_at} />}
          <OutcomeBadge outcome={cycle.outcome} />
          {cycle.outside && <Badge tone="warn">held text from outside</Badge>}
        </p>
        <h2 className={css.cycleTitle}>{cycle.private > 0 ? "A private cycle" : cycle.summary || stopped(cycle.reason)}</h2>
        {cycle.private > 0 && <PrivateCycle entries={cycle.private} spaces={cycle.private_spaces} />}
        <div className={css.buttons}>
          {cycle.private === 0 && (
            <Button small icon={<Repeat size={15} />} aria-expanded={rethinking} onClick={() => setRethinking(!rethinking)}>
              Try another model
            </Button>
          )}
          <Button small icon={<GitFork size={15} />} onClick={() => setForking(true)}>
            Fork here
          </Button>
        </div>
      </header>
      {rethinking && <Rethink cycle={cycle} />}
      <Facts cycle={cycle} />
      <ol className={css.steps}>
        {cycle.each_step.map((step) => (
          <StepView key={step.step} step={step} open>
            <Exact agent={agent.id} number={number} step={step.step} />
          </StepView>
        ))}
        {cycle.after.length > 0 && (
          <li className={css.step}>
            {cycle.after.map((each, index) => (
              <Shown key={index} {...each} open />
            ))}
          </li>
        )}
      </ol>
      <p className={css.aside}>
        <strong>Why it stopped</strong> {stopped(cycle.reason)}
      </p>
      {forking && <ForkDialog at={number} onClose={() => setForking(false)} />}
    </article>
  );
}

function Facts({ cycle }: { cycle: Schemas["CycleDetail"] }): ReactNode {
  const cached = cycle.input_tokens ? cycle.cache_read_tokens / cycle.input_tokens : 0;
  const facts: [string, ReactNode][] = [
    ["Heard", cycle.private > 0 ? "private" : company(cycle) || "nobody"],
    ["Took", duration(cycle.started_at, cycle.ended_at)],
    ["Steps", cycle.steps],
    ["Read", `${whole(cycle.input_tokens)} tokens`],
    ["From the cache", cached ? percent(cached) : "nothing"],
    ["Wrote", `${whole(cycle.output_tokens)} tokens`],
    ["Cost", cycle.dollars ? dollars(cycle.dollars) : "none or unknown"],
  ];
  return (
    <dl className={css.facts}>
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Exact({ agent, number, step }: { agent: string; number: number; step: number }): ReactNode {
  const [wanted, setWanted] = useState(false);
  const request = useStep(agent, number, step, wanted);
  return (
    <Fold title="Exact request" onOpen={() => setWanted(true)}>
      <Loaded query={request} lines={5}>
        {(found) => <ExactRequest request={found} />}
      </Loaded>
    </Fold>
  );
}
