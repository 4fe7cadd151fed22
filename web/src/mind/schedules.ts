/** Schedules as they are told, and as they are filled in. */

/** The reader's zone. */
export const HERE = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Of "recurring, cron: 0 9 * * MON, Europe/Berlin"; null for what runs once. */
export function cronOf(schedule: string): { cron: string; zone: string } | null {
  const found = /cron: (.+), ([^,]+)$/.exec(schedule);
  return found && { cron: found[1]!, zone: found[2]! };
}

/** On which days, from Monday (0) to Sunday (6), and when, as "09:00". */
export interface Weekly {
  days: readonly number[];
  time: string;
}

/** What a cron expression says, if that is a time on days of the week; otherwise null. */
export function weeklyOf(cron: string): Weekly | null {
  const found = /^(\d{1,2}) (\d{1,2}) \* \* (\S+)$/.exec(cron.trim().replace(/\s+/g, " "));
  const days = found && daysOf(found[3]!);
  if (!days || Number(found[1]) > 59 || Number(found[2]) > 23) return null;
  return { days, time: `${found[2]!.padStart(2, "0")}:${found[1]!.padStart(2, "0")}` };
}

const NAMES = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"];
export const EVERY_DAY = [0, 1, 2, 3, 4, 5, 6];

/** Of "MON-FRI", "1,3" or "*". In cron, Sunday is 0 and 7. */
function daysOf(field: string): number[] | null {
  if (field === "*") return EVERY_DAY;
  const dayOf = (text: string): number => (/^[0-7]$/.test(text) ? (Number(text) + 6) % 7 : NAMES.indexOf(text.toUpperCase()));
  const days = new Set<number>();
  for (const part of field.split(",")) {
    const [first = "", last = first, ...more] = part.split("-");
    const [from, to] = [dayOf(first), dayOf(last)];
    if (from < 0 || to < from || more.length) return null;
    for (let day = from; day <= to; day += 1) days.add(day);
  }
  return EVERY_DAY.filter((day) => days.has(day));
}

export function cronFor({ days, time }: Weekly): string {
  const [hour, minute] = time.split(":").map(Number);
  const working = days.join() === "0,1,2,3,4";
  return `${minute} ${hour} * * ${days.length === 7 ? "*" : working ? "MON-FRI" : days.map((day) => NAMES[day]).join(",")}`;
}

/** A schedule of the server in words: "every Monday at 09:00". What only cron can say stays as it is. */
export function inPlainWords(schedule: string, locale?: string): string {
  const told = cronOf(schedule);
  const weekly = told && weeklyOf(told.cron);
  if (!weekly) return schedule;
  const at = new Date(`2024-01-01T${weekly.time}:00Z`); // a Monday
  const on = (day: number): string => new Intl.DateTimeFormat(locale, { weekday: "long", timeZone: "UTC" }).format(at.getTime() + day * 86_400_000);
  const working = weekly.days.join() === "0,1,2,3,4";
  const days = weekly.days.length === 7 ? "every day" : working ? `${on(0)} to ${on(4)}` : `every ${new Intl.ListFormat(locale).format(weekly.days.map(on))}`;
  const time = new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit", timeZone: "UTC" }).format(at);
  return `${days} at ${time}${told.zone === HERE ? "" : ` (${told.zone})`}`;
}

/** A moment as an input of the browser takes it, in the reader's zone. */
export function localInput(value: string): string {
  const at = new Date(value);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
