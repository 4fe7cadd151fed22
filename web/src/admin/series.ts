/** What was used, as it is drawn and as a table. Pure. */

export interface Used {
  calls: number;
  input_tokens: number;
  output_tokens: number;
  cache_read_tokens: number;
  cache_write_tokens: number;
  cached_share: number | null;
  dollars: number;
}
export interface Group extends Used {
  key: string;
  name: string;
  days: (Used & { day: string })[];
}
export interface Told {
  days: (Used & { day: string })[];
  groups: Group[];
  total: Used;
}
export type Measure = "dollars" | "tokens" | "cached" | "calls";

export function measured(used: Used, measure: Measure): number {
  if (measure === "tokens") return used.input_tokens + used.output_tokens;
  return measure === "cached" ? used.cache_read_tokens : used[measure];
}

export interface Series {
  name: string;
  values: number[];
}

/** The dearest groups by day, and all that is left as one; without groups, everything as one. */
export function seriesOf(told: Told, measure: Measure, most = 6): Series[] {
  const whole = told.days.map((day) => measured(day, measure));
  if (told.groups.length === 0) return [{ name: "All agents", values: whole }];
  const shown = told.groups.slice(0, most).map((each) => ({ name: each.name, values: each.days.map((day) => measured(day, measure)) }));
  const rest = whole.map((value, at) => value - shown.reduce((sum, each) => sum + (each.values[at] ?? 0), 0));
  // Sums of dollars are never quite equal.
  const left = rest.map((value) => (value > 1e-7 ? value : 0));
  return left.some(Boolean) ? [...shown, { name: "Others", values: left }] : shown;
}

/** Each on top of those before it: how high its upper edge is. */
export function stacked(series: Series[]): number[][] {
  const heights: number[][] = [];
  for (const each of series) {
    const below = heights.at(-1);
    heights.push(each.values.map((value, at) => value + (below?.[at] ?? 0)));
  }
  return heights;
}

const COLUMNS = ["calls", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "dollars"] as const;

/** As a file for a spreadsheet: a line for each day, or for each group and day. */
export function csv(told: Told, by: "day" | "agent" | "model"): string {
  const head = by === "day" ? ["day", ...COLUMNS] : ["day", by, ...COLUMNS];
  const lines =
    by === "day"
      ? told.days.map((day) => [day.day, ...COLUMNS.map((name) => day[name])])
      : told.groups.flatMap((group) => group.days.map((day) => [day.day, group.name, ...COLUMNS.map((name) => day[name])]));
  return [head, ...lines].map((line) => line.map(cell).join(",")).join("\r\n") + "\r\n";
}

function cell(value: string | number): string {
  if (typeof value === "number") return String(value);
  // A name that begins like a formula is not one.
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
