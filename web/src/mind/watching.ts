/** What an agent's own stream tells of it while one looks on: `watch(state, event) -> state`. Pure. */
import type { Schemas } from "../denizen/api";
import type { Status } from "../denizen/events";

type Sent = Required<Schemas["AgentStreamEvents"]>;

/** The names of the events that this page reads. */
export const LIFE_EVENTS = [
  "agent.status",
  "cycle",
  "cycle.opened",
  "cycle.skipped",
  "cycle.failed",
  "step",
  "tool",
  "agent.alert",
  "agent.budget",
  "agent.stance",
  "stream.started",
  "stream.delta",
  "stream.aborted",
  "message",
] as const satisfies readonly (keyof Sent)[];
type Name = (typeof LIFE_EVENTS)[number];

export type CallState = Schemas["Tool"]["state"];
export type LifeEvent =
  | { [N in Name]: Sent[N] & { type: N } }[Name]
  /** The stream was opened anew: what is under way is told again, what has ended meanwhile may not be. */
  | { type: "again" };

/** The cycle that is being thought. */
export interface OpenCycle {
  id: string;
  state: "open" | "paused";
  startedAt: string;
  events: number;
  attempts: number;
  /** How often the model has answered. */
  steps: number;
  models: Record<number, string | null>;
  inputTokens: number;
  outputTokens: number;
  /** By step and position: `0.1` is the second call of the first step. */
  calls: Record<string, CallState>;
  error: string | null;
}

export interface Watched {
  status: Status | null;
  doing: string | null;
  open: OpenCycle | null;
  /** What it is writing at this moment. */
  writing: { id: string; space: string; text: string } | null;
  /** How the last cycle ended that was seen to end. */
  ended: { outcome: string; number: number | null; text: string } | null;
  alerts: string[];
  /** Grows with whatever changes the log. */
  changes: number;
  /** Grows with every cycle that ends. */
  endings: number;
  /** Grows whenever it stands otherwise to a conversation. */
  stances: number;
}

export const UNSEEN: Watched = {
  status: null,
  doing: null,
  open: null,
  writing: null,
  ended: null,
  alerts: [],
  changes: 0,
  endings: 0,
  stances: 0,
};

const MOST_ALERTS = 5;

export function watch(state: Watched, event: LifeEvent): Watched {
  switch (event.type) {
    case "agent.status":
      return { ...state, status: event.status, doing: event.doing ?? null, writing: event.status === "alive" ? state.writing : null };
    case "cycle.opened":
      return changed(state, { open: opened(state.open, event) });
    case "step":
      return state.open?.id === event.cycle ? changed(state, { open: stepped(state.open, event), writing: null }) : state;
    case "tool":
      return state.open?.id === event.cycle ? changed(state, { open: called(state.open, event) }) : state;
    case "cycle":
      return over(state, { outcome: event.outcome, number: event.number, text: event.summary });
    case "cycle.skipped":
      return over(state, { outcome: "skipped", number: null, text: event.reason });
    case "cycle.failed":
      if (event.undone) return over(state, { outcome: "undone", number: null, text: event.error });
      return changed(state, { open: state.open && { ...state.open, error: event.error } });
    case "agent.alert":
    case "agent.budget":
      return { ...state, alerts: [...state.alerts.filter((each) => each !== event.text), event.text].slice(-MOST_ALERTS) };
    case "agent.stance":
      return { ...state, stances: state.stances + 1 };
    case "again":
      return { ...state, open: null, writing: null, changes: state.changes + 1, endings: state.endings + 1, stances: state.stances + 1 };
    case "stream.started":
      return { ...state, writing: { id: event.id, space: event.space, text: "" } };
    case "stream.delta":
      return state.writing?.id === event.id ? { ...state, writing: { ...state.writing, text: state.writing.text + event.text } } : state;
    case "stream.aborted":
    case "message":
      return state.writing?.id === event.id ? { ...state, writing: null } : state;
  }
}

function changed(state: Watched, more: Partial<Watched>): Watched {
  return { ...state, ...more, changes: state.changes + 1 };
}

function over(state: Watched, ended: Watched["ended"]): Watched {
  return { ...state, open: null, writing: null, ended, changes: state.changes + 1, endings: state.endings + 1 };
}

function opened(known: OpenCycle | null, told: Schemas["CycleOpened"]): OpenCycle {
  const kept = known?.id === told.cycle ? known : null;
  // Whoever comes again is told all steps again.
  return {
    id: told.cycle,
    state: told.state,
    startedAt: told.started_at,
    events: told.events,
    attempts: told.attempts,
    steps: kept?.steps ?? 0,
    models: kept?.models ?? {},
    inputTokens: kept?.inputTokens ?? 0,
    outputTokens: kept?.outputTokens ?? 0,
    calls: kept?.calls ?? {},
    error: null,
  };
}

function stepped(open: OpenCycle, told: Schemas["Step"]): OpenCycle {
  if (told.step < open.steps) return open;
  return {
    ...open,
    steps: told.step + 1,
    models: { ...open.models, [told.step]: told.model },
    inputTokens: open.inputTokens + told.input_tokens,
    outputTokens: open.outputTokens + told.output_tokens,
    error: null,
  };
}

function called(open: OpenCycle, told: Schemas["Tool"]): OpenCycle {
  return { ...open, calls: { ...open.calls, [`${told.step}.${told.position}`]: told.state } };
}
