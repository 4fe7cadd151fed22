/** The part of a text around what was looked for. Pure. */

export interface Part {
  text: string;
  hit: boolean;
}

const AROUND = 90;
const SHOWN = 280;

/** The text around the first of the words, with each of them marked. */
export function excerpt(text: string, query: string): Part[] {
  const words = query.split(/[^\p{L}\p{N}]+/u).filter(Boolean);
  if (words.length === 0) return [{ text: text.slice(0, SHOWN), hit: false }];
  const wanted = new RegExp(`(${words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|")})`, "giu");
  const at = text.search(wanted);
  const start = Math.max(0, at - AROUND);
  const end = Math.min(text.length, start + SHOWN);
  const shown = `${start > 0 ? "…" : ""}${text.slice(start, end)}${end < text.length ? "…" : ""}`;
  return shown
    .split(wanted)
    .map((part, index) => ({ text: part, hit: index % 2 === 1 }))
    .filter((part) => part.text);
}
