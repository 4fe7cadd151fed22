/** Schedules as they are told, and as they are filled in. */

/** The reader's zone. */
export const HERE = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Of "recurring, cron: 0 9 * * MON, Europe/Berlin"; null for what runs once. */
export function cronOf(schedule: string): { cron: string; zone: string } | null {
  const found = /cron: (.+), ([^,]+)$/.exec(schedule);
  return found && { cron: found[1]!, zone: found[2]! };
}

/** A moment as an input of the browser takes it, in the reader's zone. */
export function localInput(value: string): string {
  const at = new Date(value);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
