/** Numbers and states in words. Pure. */
import type { Schemas } from "../denizen/api.ts";
import { percent, short } from "../ui/amounts.ts";

export type Cycle = Schemas["CycleOut"];
export type Outcome = Cycle["outcome"];

/** From one time to another: "0.4 s", "12 s", "3 min 20 s", "2 h 5 min". */
export function duration(from: string | null, to: string | null): string | null {
  if (from === null || to === null) return null;
  const seconds = Math.max(0, (Date.parse(to) - Date.parse(from)) / 1000);
  if (seconds < 0.1) return "< 0.1 s";
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return joined(minutes, "min", Math.round(seconds % 60), "s");
  return joined(Math.floor(minutes / 60), "h", minutes % 60, "min");
}

function joined(large: number, unit: string, small: number, smaller: string): string {
  return small ? `${large} ${unit} ${small} ${smaller}` : `${large} ${unit}`;
}

/** "8.4K read (94% cached), 120 written". */
export function tokens(used: { input_tokens: number; output_tokens: number; cache_read_tokens?: number }): string {
  const cached = used.cache_read_tokens && used.input_tokens ? ` (${percent(used.cache_read_tokens / used.input_tokens)} cached)` : "";
  return `${short(used.input_tokens)} read${cached}, ${short(used.output_tokens)} written`;
}

export const OUTCOMES: Record<Outcome, string> = {
  open: "In progress",
  paused: "Waiting for an answer",
  acted: "Acted",
  failed: "Failed",
  skipped: "Skipped",
  undone: "Rolled back",
};

const REASONS: Record<string, string> = {
  answered: "It had replied.",
  skipped: "It had nothing more to do.",
  failed: "It failed too many times.",
  budget: "Its budget was used up.",
  max_steps: "It reached the step limit.",
  token_budget: "It reached the token limit.",
  max_dollars: "It reached the cost limit.",
  max_seconds: "It reached the time limit.",
  window_full: "Its window was full.",
  repeated_failure: "The same call had failed three times.",
  responded_to_all: "It had answered everyone.",
};

/** Why a cycle ended, in a sentence; conditions of one's own are told by their names. */
export function stopped(reason: string): string {
  if (!reason) return "No reason given.";
  return REASONS[reason] ?? (/^[\w.-]+$/.test(reason) ? `A stop condition matched: ${reason}.` : reason);
}

const DEEDS: Record<string, string> = {
  send_message: "sent a message",
  set_timer: "set a timer",
  set_plans: "changed its plans",
  set_goals: "changed its goals",
  set_memories: "changed its notes",
  read_messages: "read messages",
  recall: "recalled",
  read_entry: "read an entry",
  enter_space: "entered a space",
  skip: "skipped",
};

/** A tool as a deed: "sent a message"; others by their names. */
export function deed(tool: string): string {
  return DEEDS[tool] ?? tool;
}

const EVENTS: Record<Schemas["EventOut"]["type"], string> = {
  space_message: "Message",
  mention: "Mention",
  service_trigger: "Service",
  plan_trigger: "Plan",
  timer: "Timer",
  tool_result: "Tool result",
  notice: "Notice",
};

export function eventType(type: Schemas["EventOut"]["type"]): string {
  return EVENTS[type];
}

const SHOWN: Record<string, string> = {
  inbox: "Messages",
  recalled: "Recalled from history",
  update: "New messages meanwhile",
  nudge: "A reminder",
  private: "Private",
  note: "A note",
};

/** What an entry of the log is, that the agent was shown. */
export function shownAs(kind: string): string {
  return SHOWN[kind] ?? kind;
}

/** "Noor and Sam in Kitchen"; nothing where nobody was heard. */
export function company(cycle: { people: string[]; spaces: string[] }): string {
  const people = listed(cycle.people, 3);
  const spaces = listed(cycle.spaces, 2);
  return people && spaces ? `${people} in ${spaces}` : people || (spaces && `in ${spaces}`);
}

function listed(names: string[], most: number): string {
  if (names.length <= most) return names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : (names[0] ?? "");
  return `${names.slice(0, most).join(", ")} and ${names.length - most} more`;
}
