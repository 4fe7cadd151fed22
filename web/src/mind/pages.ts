/** A life that is read page by page, the newest first, while it goes on. Pure. */
import type { Schemas } from "../denizen/api";
import type { Cycle } from "./words.ts";

export type CyclePage = Schemas["CyclePage"];

/** The pages with what has happened since: `fresh` is the first page, read anew. */
export function withNewest(pages: CyclePage[], fresh: CyclePage): CyclePage[] {
  const [first, ...rest] = pages;
  if (first === undefined) return [fresh];
  const told = new Set(fresh.cycles.map(key));
  const reaches = first.cycles.some((each) => each.kept && told.has(key(each)));
  // More has happened than fits a page: what lies between is read again.
  if (!reaches && first.cycles.some((each) => each.kept)) return [fresh];
  const older = first.cycles.filter((each) => !told.has(key(each)) && each.ended_at !== null);
  return [{ ...first, cycles: [...fresh.cycles, ...older] }, ...rest];
}

/** Every cycle once, by days as the reader reckons them; `dayOf` says to which day a time belongs. */
export function byDay(pages: CyclePage[], dayOf: (at: string) => number): { day: number; at: string; cycles: Cycle[] }[] {
  const days: { day: number; at: string; cycles: Cycle[] }[] = [];
  const seen = new Set<string>();
  for (const cycle of pages.flatMap((page) => page.cycles)) {
    const at = cycle.ended_at ?? cycle.started_at;
    if (at === null || seen.has(key(cycle))) continue;
    seen.add(key(cycle));
    const day = dayOf(at);
    const last = days.at(-1);
    if (last?.day === day) last.cycles.push(cycle);
    else days.push({ day, at, cycles: [cycle] });
  }
  return days;
}

/** An open cycle is another thing than what it becomes; one that was undone several times is one each time. */
export function key(cycle: Cycle): string {
  return `${cycle.id} ${cycle.outcome} ${cycle.ended_at ?? ""}`;
}
