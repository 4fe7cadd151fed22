/** What is remembered, sorted and in words. Pure. */
import type { Schemas } from "../denizen/api";

export type Memory = Schemas["MemoryOut"];
export type Version = Schemas["MemoryVersionOut"];

export const CATEGORIES = ["facts", "preferences", "people", "projects", "decisions", "open_loops", "todos"] as const;

const CATEGORY_NAMES: Record<string, string> = {
  facts: "Facts",
  preferences: "Preferences",
  people: "People",
  projects: "Projects",
  decisions: "Decisions",
  open_loops: "Open loops",
  todos: "To-dos",
  snapshot: "Everything",
};

export function categoryName(category: string): string {
  return CATEGORY_NAMES[category] ?? category;
}

const CHANGE_NAMES: Record<string, string> = {
  learned: "Learned",
  confirmed: "Confirmed",
  said_again: "Said again",
  corrected: "Corrected",
  reverted: "Reverted",
};

export function changeName(kind: string): string {
  return CHANGE_NAMES[kind] ?? kind;
}

/** Something that is true, and what it took the place of, the newest first. */
export interface Held {
  memory: Memory;
  earlier: Memory[];
}

/**
 * What is true, each with what it took the place of; what is true no more, and whose successor is not among these,
 * stands for itself in `gone`.
 */
export function held(memories: Memory[]): { held: Held[]; gone: Memory[] } {
  const known = new Map(memories.map((each) => [each.id, each]));
  const earlier = new Map<string, Memory[]>();
  const gone: Memory[] = [];
  for (const each of memories) {
    if (each.superseded_by === null) continue;
    const now = successor(each, known);
    if (now === undefined) gone.push(each);
    else earlier.set(now.id, [...(earlier.get(now.id) ?? []), each]);
  }
  const true_ = memories.filter((each) => each.superseded_by === null);
  return { held: true_.map((memory) => ({ memory, earlier: earlier.get(memory.id) ?? [] })), gone };
}

function successor(memory: Memory, known: Map<string, Memory>): Memory | undefined {
  let at: Memory | undefined = memory;
  // What is linked in a circle has no end, and no more links than there are memories.
  for (let steps = 0; at !== undefined && at.superseded_by !== null; steps += 1) {
    if (steps > known.size) return undefined;
    at = known.get(at.superseded_by);
  }
  return at;
}

/** By category, in the order in which they are always told; others after these. */
export function byCategory(all: Held[]): [string, Held[]][] {
  const groups = new Map<string, Held[]>(CATEGORIES.map((each) => [each, []]));
  for (const each of all) groups.set(each.memory.category, [...(groups.get(each.memory.category) ?? []), each]);
  return [...groups].filter(([, found]) => found.length > 0);
}

/** "1 memory", "12 memories". */
export function counted(count: number, one: string, many: string): string {
  return `${count.toLocaleString()} ${count === 1 ? one : many}`;
}

/** An item of what a conversation came to. */
export interface Item {
  text: string;
  confidence: number;
  sources: number[];
}

/** The items of a conversation's memory by category, and its tags; what has another shape is left out. */
export function itemsOf(document: Record<string, unknown>): { groups: [string, Item[]][]; tags: string[] } {
  const groups = CATEGORIES.map((category): [string, Item[]] => [category, list(document[category]).flatMap(item)]);
  return { groups: groups.filter(([, found]) => found.length > 0), tags: list(document["tags"]).filter((each) => typeof each === "string") };
}

function item(told: unknown): Item[] {
  if (typeof told !== "object" || told === null || !("text" in told) || typeof told.text !== "string") return [];
  const { confidence, sources } = told as { confidence?: unknown; sources?: unknown };
  return [{ text: told.text, confidence: typeof confidence === "number" ? confidence : 1, sources: list(sources).filter((each) => typeof each === "number") }];
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Findings of which many say the same of one memory each are one finding of all of these. */
export function merged(findings: Schemas["FindingOut"][]): Schemas["FindingOut"][] {
  const all = new Map<string, Schemas["FindingOut"]>();
  for (const each of findings) {
    const alike = each.memories.length === 1 ? `${each.problem} ${each.scope} ${each.why}` : each.memories.join(" ");
    const found = all.get(alike);
    all.set(alike, found ? { ...found, memories: [...found.memories, ...each.memories] } : each);
  }
  return [...all.values()].sort((a, b) => weight(a) - weight(b));
}

/** What somebody should look at first. */
function weight({ problem }: Schemas["FindingOut"]): number {
  return ["contradiction", "duplicate", "junk", "never used"].indexOf(problem);
}
