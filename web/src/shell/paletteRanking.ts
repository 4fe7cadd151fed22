/** What the palette offers for what was typed, the best first. Pure. */

export interface Entry {
  id: string;
  group: "Spaces" | "People" | "Agents" | "Actions" | "Messages";
  title: string;
  /** Beside the title: a handle, what is said. */
  hint?: string;
  /** Other words by which it is found. */
  words?: string;
}

/** How well `typed` fits `text`; 0 if it does not. The beginning of words counts most, and letters in a row. */
export function fit(typed: string, text: string): number {
  const wanted = fold(typed);
  const given = fold(text);
  if (!wanted) return 1;
  if (given.startsWith(wanted)) return 100 - Math.min(given.length - wanted.length, 40) / 10;
  const within = given.indexOf(` ${wanted}`);
  if (within >= 0) return 80 - Math.min(within, 40) / 10;
  if (wanted.split(" ").every((word) => ` ${given}`.includes(` ${word}`))) return 70;
  const inside = given.indexOf(wanted);
  if (inside >= 0) return 50 - Math.min(inside, 40) / 10;
  return initials(given).startsWith(wanted.replaceAll(" ", "")) ? 40 : scattered(wanted, given);
}

/** The entries that fit, the best first; without a word typed, as they are. */
export function ranked<E extends Entry>(typed: string, entries: E[], most = 12): E[] {
  const query = typed.trim().replace(/^[@#]/, "");
  if (!query) return entries.slice(0, most);
  const scored: [number, number, E][] = [];
  entries.forEach((each, at) => {
    const score = Math.max(fit(query, each.title), 0.9 * fit(query, each.hint?.replace(/^@/, "") ?? ""), 0.8 * Math.max(0, ...(each.words?.split(",") ?? []).map((word) => fit(query, word))));
    if (score > 0) scored.push([score, at, each]);
  });
  return scored
    .sort(([a, i], [b, j]) => b - a || i - j)
    .slice(0, most)
    .map(([, , each]) => each);
}

/** Entries by group; the group of the best comes first. */
export function grouped<E extends Entry>(entries: E[]): [E["group"], E[]][] {
  const groups = new Map<E["group"], E[]>();
  for (const each of entries) groups.set(each.group, [...(groups.get(each.group) ?? []), each]);
  return [...groups];
}

function fold(text: string): string {
  return text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase().trim().replace(/\s+/g, " ");
}

function initials(text: string): string {
  return text
    .split(" ")
    .map((word) => word[0] ?? "")
    .join("");
}

/** The letters in their order, with others between them: for short words that are typed fast. */
function scattered(wanted: string, given: string): number {
  if (wanted.length < 3) return 0;
  let at = 0;
  let first = -1;
  for (const letter of given) {
    if (letter === wanted[at]) {
      if (at === 0) first = given.indexOf(letter);
      at += 1;
      if (at === wanted.length) return first === 0 ? 20 : 10;
    }
  }
  return 0;
}
