/** Footnotes: `[^1]` in a text, and `[^1]: …` anywhere in it. Pure. */

export interface Footnotes {
  /** The text without the notes. */
  text: string;
  /** The notes that the text refers to, in the order of their numbers. */
  notes: { label: string; text: string }[];
}

const DEFINITION = /^ {0,3}\[\^([^\]\s]{1,64})\]:[ \t]*(.*)$/;
export const REFERENCE = /^\[\^([^\]\s]{1,64})\]/;
const FENCE = /^ {0,3}(`{3,}|~{3,})/;

/** Parts a text from its footnotes. What is in fenced code stays, and so does a note that nothing refers to. */
export function footnotes(text: string): Footnotes {
  if (!text.includes("[^")) return { text, notes: [] };
  const kept: string[] = [];
  const found = new Map<string, { lines: string[]; raw: string[] }>();
  let fence: string | null = null;
  let open: { lines: string[]; raw: string[] } | null = null;
  for (const line of text.split("\n")) {
    const mark = FENCE.exec(line)?.[1];
    const opened = fence === null ? DEFINITION.exec(line) : null;
    if (mark && fence === null) fence = mark[0]!;
    else if (mark && fence === mark[0]) fence = null;
    if (opened && !found.has(opened[1]!)) {
      open = { lines: [opened[2]!], raw: [line] };
      found.set(opened[1]!, open);
    } else if (open && fence === null && /^(?: {2,}|\t)\S/.test(line)) {
      open.lines.push(line.trim());
      open.raw.push(line);
    } else {
      open = null;
      kept.push(line);
    }
  }
  const rest = kept.join("\n");
  const used: string[] = [];
  for (const [, label] of rest.matchAll(/\[\^([^\]\s]{1,64})\]/g)) if (found.has(label!) && !used.includes(label!)) used.push(label!);
  if (used.length === 0) return { text, notes: [] };
  const unused = [...found].filter(([label]) => !used.includes(label)).flatMap(([, { raw }]) => raw);
  return {
    text: unused.length ? [rest, ...unused].join("\n") : rest,
    notes: used.map((label) => ({ label, text: found.get(label)!.lines.join("\n") })),
  };
}
