/** What several screens of a mind show: cycles, steps, calls, texts. */
import { ChevronRight, Wrench } from "lucide-react";
import { type ReactNode, useState } from "react";
import { Link } from "wouter";
import type { Schemas } from "../denizen/api";
import { dollars } from "../ui/amounts";
import { Badge, type Tone } from "../ui/Badge";
import { Button } from "../ui/Button";
import { classes } from "../ui/classes";
import { Code } from "../ui/Code";
import { Time } from "../ui/Time";
import css from "./mind.module.css";
import { json, readable, type Step, type ToolCall } from "./transcript";
import type { CallState } from "./watching";
import { company, type Cycle, deed, duration, type Outcome, OUTCOMES, shownAs, stopped, tokens } from "./words";

const TONES: Record<Outcome, Tone> = { open: "good", paused: "warn", acted: "plain", failed: "bad", skipped: "plain", undone: "warn" };

export function OutcomeBadge({ outcome }: { outcome: Outcome }): ReactNode {
  return <Badge tone={TONES[outcome]}>{OUTCOMES[outcome]}</Badge>;
}

/** A cycle on the timeline. Those of which nothing is kept are told quietly. */
export function CycleRow({ cycle, at }: { cycle: Cycle; at: string }): ReactNode {
  const when = cycle.ended_at ?? cycle.started_at;
  const time = <span className={css.rowTime}>{when && <Time value={when} form="clock" />}</span>;
  if (!cycle.kept) {
    return (
      <div className={classes(css.row, css.quietRow)}>
        {time}
        <span className={css.rowMark} data-outcome={cycle.outcome} />
        <div className={css.rowBody}>
          <p>
            <span className={css.rowWord}>{OUTCOMES[cycle.outcome]}</span>
            {cycle.outcome === "open" || cycle.outcome === "paused" ? null : <> {cycle.reason || "no reason given"}</>}
          </p>
        </div>
      </div>
    );
  }
  return (
    <Link href={`${at}/life/${cycle.number}`} className={css.row}>
      {time}
      <span className={css.rowMark} data-outcome={cycle.outcome} />
      <div className={css.rowBody}>
        <p className={css.summary}>{cycle.summary || stopped(cycle.reason)}</p>
        <p className={css.meta}>
          {cycle.outcome === "failed" && <OutcomeBadge outcome="failed" />}
          <span>#{cycle.number}</span>
          {company(cycle) && <span>{company(cycle)}</span>}
          {cycle.tools.length > 0 && <span>{cycle.tools.map(deed).join(", ")}</span>}
          <span>{duration(cycle.started_at, cycle.ended_at)}</span>
          <span>{tokens(cycle)}</span>
          {cycle.dollars > 0 && <span>{dollars(cycle.dollars)}</span>}
        </p>
      </div>
    </Link>
  );
}

/** Something that opens to show more. */
export function Fold({ title, open, children, className, onOpen }: { title: ReactNode; open?: boolean; children: ReactNode; className?: string; onOpen?: () => void }): ReactNode {
  return (
    <details
      className={classes(css.fold, className)}
      open={open}
      onToggle={(event) => {
        if (event.currentTarget.open) onOpen?.();
      }}
    >
      <summary>
        <ChevronRight size={15} aria-hidden />
        <span>{title}</span>
      </summary>
      <div className={css.foldBody}>{children}</div>
    </details>
  );
}

const CLAMPED_CHARACTERS = 900;
const CLAMPED_LINES = 14;

/** A text as it is; where it is long, its beginning, and the rest on demand. */
export function Words({ text, plain }: { text: string; plain?: boolean }): ReactNode {
  const [all, setAll] = useState(false);
  const long = text.length > CLAMPED_CHARACTERS || text.split("\n", CLAMPED_LINES + 1).length > CLAMPED_LINES;
  const shown = all || !long ? text : `${text.split("\n", CLAMPED_LINES).join("\n").slice(0, CLAMPED_CHARACTERS).trimEnd()} …`;
  return (
    <div className={css.words}>
      <p className={plain ? css.plainWords : css.keptWords} dir="auto">
        {shown}
      </p>
      {long && (
        <Button small variant="quiet" onClick={() => setAll(!all)}>
          {all ? "Show less" : "Show all"}
        </Button>
      )}
    </div>
  );
}

export function Shown({ kind, text, outside, open }: { kind: string; text: string; outside?: string; open?: boolean }): ReactNode {
  const title = outside ? (
    <>
      {shownAs(kind)} <Badge tone="warn">{outside}</Badge>
    </>
  ) : (
    shownAs(kind)
  );
  return (
    <Fold title={title} open={open}>
      <Words text={text} />
    </Fold>
  );
}

interface StepViewProps {
  step: Step | Schemas["StepOut"];
  /** How its calls stand, by position, while it is under way. */
  states?: (position: number) => CallState | undefined;
  /** Whether what came in is open at once. */
  open?: boolean;
  children?: ReactNode;
}

/** One step: what was new, what the model thought, said and called, and what came of it. */
export function StepView({ step, states, open, children }: StepViewProps): ReactNode {
  return (
    <li className={css.step}>
      <div className={css.stepHead}>
        <h3>Step {step.step + 1}</h3>
        <span className={css.meta}>
          {step.model && <span>{step.model}</span>}
          {step.usage && <span>{tokens(step.usage)}</span>}
          {"outside" in step && step.outside && <span>its request held text from outside</span>}
        </span>
      </div>
      {step.shown.map((each, index) => (
        <Shown key={index} {...each} open={open && each.text.length < 2_000} />
      ))}
      {step.thinking && (
        <Fold title="Thinking" open={open}>
          <Words text={step.thinking} plain />
        </Fold>
      )}
      {step.text && (
        <div className={css.said}>
          <Words text={step.text} plain />
        </div>
      )}
      {step.calls.map((call, position) => (
        <CallView key={position} call={call} state={call.result === null ? (states?.(position) ?? (states ? "intent" : undefined)) : undefined} />
      ))}
      {"results_outside" in step && step.results_outside && <Badge tone="warn">{step.results_outside}</Badge>}
      {children}
    </li>
  );
}

const STATES: Record<CallState, string> = { intent: "running", asked: "waiting for an answer", done: "done" };

export function CallView({ call, state }: { call: ToolCall | Schemas["ToolCall"]; state?: CallState }): ReactNode {
  return (
    <div className={css.call}>
      <p className={css.callHead}>
        <Wrench size={14} aria-hidden />
        <code>{call.tool}</code>
        {state && <Badge tone={state === "asked" ? "warn" : state === "done" ? "plain" : "accent"}>{STATES[state]}</Badge>}
      </p>
      <Arguments value={call.arguments} />
      {call.result !== null && <Result text={call.result} />}
    </div>
  );
}

/** Arguments by name; what is no object is shown as it was written. */
export function Arguments({ value }: { value: unknown }): ReactNode {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return <Words text={typeof value === "string" ? value : json(value)} />;
  const entries = Object.entries(value);
  if (entries.length === 0) return null;
  return (
    <dl className={css.arguments}>
      {entries.map(([name, each]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{typeof each === "string" ? <Words text={each} plain /> : typeof each === "object" && each !== null ? <Code text={json(each)} language="json" label={name} /> : String(each)}</dd>
        </div>
      ))}
    </dl>
  );
}

const INLINE = 90;

function Result({ text }: { text: string }): ReactNode {
  const told = readable(text);
  const flat = text.replaceAll(/\s+/g, " ").trim();
  if (!told.json && flat.length <= INLINE) return <p className={css.result}>{flat || "No result."}</p>;
  return (
    <Fold
      className={css.resultFold}
      title={
        <>
          Result <span className={css.preview}>{flat.slice(0, INLINE)}</span>
        </>
      }
    >
      {told.json ? <Code text={told.text} language="json" label="Result" /> : <Words text={text} />}
    </Fold>
  );
}
