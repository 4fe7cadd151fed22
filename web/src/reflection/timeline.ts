/** How a state of mind went: what was seen and what came of it, in one line of time. Pure. */
import type { Schemas } from "../denizen/api";

export type Run = Schemas["RunOut"];
export type Signal = Schemas["SignalOut"];
export type State = Schemas["StateOut"];
export type Moment = { at: string; signal: Signal } | { at: string; run: Run };

/** Signals and what came of them, the oldest first; a signal before what it brought about. */
export function moments(runs: Run[], signals: Signal[]): Moment[] {
  const all: Moment[] = [...signals.map((signal) => ({ at: signal.at, signal })), ...runs.map((run) => ({ at: run.at, run }))];
  return all.sort((a, b) => Date.parse(a.at) - Date.parse(b.at) || Number("run" in a) - Number("run" in b) || number(a) - number(b));
}

function number(moment: Moment): number {
  return "run" in moment ? moment.run.number : moment.signal.number;
}

/** A stretch of moments in which something stayed as it was: from the moment `from` to before `to`. */
export interface Stretch {
  value: string;
  from: number;
  to: number;
}

/** One side of the state of mind over the moments; what it was before the first is `before`. */
export function stretches(all: Moment[], side: keyof State, before: string): Stretch[] {
  const found: Stretch[] = [];
  let value = before;
  all.forEach((moment, at) => {
    if ("run" in moment) value = moment.run.state[side];
    const last = found.at(-1);
    if (last?.value === value) last.to = at + 1;
    else found.push({ value, from: at, to: at + 1 });
  });
  return found;
}

const SIGNALS: Record<string, string> = {
  user_frustrated: "frustrated",
  user_confused: "confused",
  user_satisfied: "satisfied",
  error_threshold_exceeded: "too many errors",
  low_engagement: "hardly engaged",
};

/** A signal in words: "frustrated". */
export function signalName(name: string): string {
  return SIGNALS[name] ?? name.replaceAll("_", " ");
}

const CAUSES: Record<string, string> = { interval: "scheduled", manual: "started by hand", set: "set by hand", reset: "reset by hand" };

/** Why a metaprompt was asked, or what was done by hand. */
export function causeName(cause: string): string {
  return CAUSES[cause] ?? signalName(cause);
}

/** Why a state of mind is what it is, by what came of it last; nothing where that says nothing. */
export function whyWords(last: Pick<Run, "outcome" | "reason" | "cause"> | null): string {
  if (last === null || last.outcome === "failed") return "";
  return last.reason || (last.outcome === "changed" ? causeName(last.cause) : "");
}

/** The ids of the metaprompts that settings of reflection have themselves: who has one can be asked it. */
export function ownMetaprompts(settings: unknown): string[] {
  const own = (settings as { metaprompts?: { id: string }[] } | null | undefined)?.metaprompts;
  return (own ?? []).map((each) => each.id);
}

/** What is different between two states: "mood: patient → curious". */
export function differences(before: State, after: State): { side: keyof State; before: string; after: string }[] {
  return SIDES.map(([side]) => ({ side, before: before[side], after: after[side] })).filter((each) => each.before !== each.after);
}

export const SIDES: [keyof State, string][] = [
  ["mood", "Mood"],
  ["user_skill", "Their skill"],
  ["task_complexity", "The task"],
];

/** The settings of a conversation as they are sent: what says nothing is left out, and what we do not show is kept. */
export function settingsOf(before: Record<string, unknown>, preset: string, mode: string, profile: string): Record<string, unknown> {
  const { profile: _, ...others } = (before["reflection"] ?? {}) as Record<string, unknown>;
  const reflection = profile ? { ...others, profile } : others;
  return {
    ...(preset && { preset }),
    ...(mode.trim() && { mode: mode.trim() }),
    ...(Object.keys(reflection).length > 0 && { reflection }),
  };
}
