/** What a panel's state is called, and what a vote says. Pure. */
import type { Reply, Round, Schemas, VoiceStance } from "../denizen/api.ts";
import { whyWords } from "../reflection/timeline.ts";

export type Tally = Schemas["TallyOut"];

/** How a reply stands, in plain words. `said`: whether there is text already. */
export function stateWords(state: Reply["state"], said: boolean): string {
  switch (state) {
    case "waiting":
      return "waiting";
    case "running":
      return said ? "writing" : "thinking";
    case "done":
      return "done";
    case "failed":
      return "has failed";
    case "cancelled":
      return "was stopped";
  }
}

/** `question 2 of 3`; nothing where the phase has no name. */
export function phaseWords(phase: Reply["phase"]): string {
  if (!phase?.name) return "";
  return phase.of === null ? phase.name : `${phase.name} ${phase.turn} of ${phase.of}`;
}

/** How far a round has come: `2 of 3 have answered`. */
export function progressWords(round: Round): string {
  const replies = Object.values(round.advisor_responses);
  const count = (state: Reply["state"]): number => replies.filter((each) => each.state === state).length;
  const [done, failed, stopped] = [count("done"), count("failed"), count("cancelled")];
  const verb = round.kind === "vote" ? "voted" : "answered";
  const said = done === replies.length && done > 1 ? `All ${done} have ${verb}` : `${done} of ${replies.length} ${done === 1 ? "has" : "have"} ${verb}`;
  return [said, failed && `${failed} failed`, stopped && `${stopped} stopped`].filter(Boolean).join(", ");
}

/** The turns, each with its rounds in order. */
export function turnsOf(rounds: readonly Round[]): Round[][] {
  const turns = new Map<number, Round[]>();
  for (const round of rounds) turns.set(round.turn, [...(turns.get(round.turn) ?? []), round]);
  return [...turns.values()];
}

/** What stands over a round: nothing over the answers to the message itself. */
export function roundTitle(round: Round, turn: readonly Round[]): string {
  if (round.kind === "vote") return round.question ? `Vote: ${round.question}` : "Vote";
  if (round.kind !== "crosstalk") return "";
  const all = turn.filter((each) => each.kind === "crosstalk");
  return all.length > 1 ? `Cross-talk (${all.indexOf(round) + 1})` : "Cross-talk";
}

/** Who stands farthest from whom, and whether all are of one mind. */
export function dissentWords(tally: Tally, nameOf: (advisor: string) => string): string {
  if (tally.camps.length < 2) return "All agree.";
  let most = { one: "", other: "", far: -1 };
  for (const [one, others] of Object.entries(tally.dissent)) {
    for (const [other, far] of Object.entries(others)) if (far > most.far) most = { one, other, far };
  }
  return `Most different: ${nameOf(most.one)} and ${nameOf(most.other)}.`;
}

/** How far apart, in words; a table of numbers alone tells little. */
export function distanceWords(far: number): string {
  if (far === 0) return "together";
  if (far < 0.4) return "near";
  return far < 0.75 ? "apart" : "very different";
}

/** The list with the thing at `from` moved by `by` places; as it was where there is no such place. */
export function moved<T>(list: readonly T[], from: number, by: number): T[] {
  const to = from + by;
  const next = [...list];
  if (to < 0 || to >= next.length) return next;
  next.splice(to, 0, ...next.splice(from, 1));
  return next;
}

/** What last became of a voice's state of mind, in a line. */
export function lastWords({ last, reflects }: Pick<VoiceStance, "last" | "reflects">): string {
  if (last === null) return reflects ? "No changes yet." : "Reflection is off.";
  if (last.outcome === "failed") return "Reflection failed.";
  return whyWords(last) || "Reflected, no change.";
}

/** What of reflection is set beside its profile and model; forms that do not show it keep it. */
export function alsoSetWords(settings: Schemas["ReflectionSettings"] | null): string {
  const found = [settings?.sentiment && "sentiment, instead of the profile's", settings?.metaprompts.length && "metaprompts"].filter(Boolean);
  return found.length === 0 ? "" : `Other settings, unchanged: ${found.join("; ")}.`;
}

export type Phase = Schemas["denizen__panel__phases__Phase"];

/** A phase while it is edited: the number of its last turn as it was typed. */
export interface PhaseDraft {
  key: number;
  name: string;
  until: string;
  instructions: string;
}

export function phaseDrafts(phases: readonly Phase[]): PhaseDraft[] {
  return phases.map(({ name, until_turn, instructions }, key) => ({ key, name: name ?? "", until: until_turn ? String(until_turn) : "", instructions }));
}

export function phasesOf(drafts: readonly PhaseDraft[]): Phase[] {
  return drafts.map(({ name, until, instructions }) => ({ name: name.trim(), until_turn: until ? Number(until) : null, instructions: instructions.trim() }));
}

/** The first phase that cannot apply as it is, and why; null if there is none. */
export function phaseFault(drafts: readonly PhaseDraft[]): { at: number; field: "until" | "instructions"; text: string } | null {
  let before = 0;
  for (const [at, { until, instructions }] of drafts.entries()) {
    const turn = Number(until);
    if (until && (!Number.isInteger(turn) || turn < 1)) return { at, field: "until", text: "Use a whole number from 1." };
    if (until && turn <= before) return { at, field: "until", text: `The phase before ends with turn ${before}. Use a higher number.` };
    if (!until && at < drafts.length - 1) return { at, field: "until", text: "Only the last phase can have no end." };
    if (!instructions.trim()) return { at, field: "instructions", text: "Write what the advisor has to do." };
    before = turn;
  }
  return null;
}
