import { type ReactNode, useEffect, useState } from "react";

const FULL = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });
const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const DAY = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long" });
const DAY_AND_YEAR = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "long", year: "numeric" });
const SHORT = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
const SHORT_AND_YEAR = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" });
const AGO = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "long" });

/** A time in the reader's zone, with the full time as title. */
export function Time({ value, form = "short" }: { value: string; form?: "clock" | "near" | "short" | "ago" | "day" }): ReactNode {
  const at = new Date(value);
  const now = useMinute(form === "ago");
  const text = form === "clock" ? CLOCK.format(at) : form === "ago" ? ago(at, now) : form === "day" ? dayOf(at) : form === "near" ? near(at) : short(at);
  return (
    <time dateTime={value} title={FULL.format(at)}>
      {text}
    </time>
  );
}

/** "Today", "Yesterday", or the day in words. */
export function dayOf(at: Date, now: Date = new Date()): string {
  const days = Math.round((midnight(now) - midnight(at)) / 86_400_000);
  if (days === 0) return "Today";
  if (days === 1) return "Yesterday";
  return at.getFullYear() === now.getFullYear() ? DAY.format(at) : DAY_AND_YEAR.format(at);
}

/** "10:00" today; otherwise with the day. For what is soon. */
function near(at: Date): string {
  return midnight(at) === midnight(new Date()) ? CLOCK.format(at) : short(at);
}

/** "5 Jan, 10:00"; the year where it is another. */
function short(at: Date): string {
  return (at.getFullYear() === new Date().getFullYear() ? SHORT : SHORT_AND_YEAR).format(at);
}

/** "3 minutes ago", "in 2 hours". */
export function ago(at: Date, now: number = Date.now()): string {
  const seconds = Math.round((at.getTime() - now) / 1000);
  const distance = Math.abs(seconds);
  if (distance < 45) return "just now";
  if (distance < 3600) return AGO.format(Math.round(seconds / 60), "minute");
  if (distance < 86_400) return AGO.format(Math.round(seconds / 3600), "hour");
  return AGO.format(Math.round(seconds / 86_400), "day");
}

/** The same for all times of a day, in the reader's zone. */
export function dayKey(value: string): number {
  return midnight(new Date(value));
}

function midnight(at: Date): number {
  return new Date(at.getFullYear(), at.getMonth(), at.getDate()).getTime();
}

function useMinute(wanted: boolean): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!wanted) return;
    const timer = setInterval(() => setNow(Date.now()), 60_000);
    return () => clearInterval(timer);
  }, [wanted]);
  return now;
}
