/** What stands in a conversation, row by row, and which of the rows are drawn. Pure: functions of the state. */
import type { Call, Message } from "../denizen/api.ts";
import type { CallDraft, Pending, Writing } from "../denizen/store.ts";

export interface MessageRow {
  kind: "message";
  key: string;
  message: Message;
  /** The first of its day. */
  newDay: boolean;
  /** The first that was not read when the person came. */
  firstUnread: boolean;
  /** Right after one of the same author: their name is not said again. */
  continued: boolean;
  /** Calls that stand behind it. */
  calls: Call[];
}

export type Row =
  | MessageRow
  | { kind: "call"; key: string; call: Call }
  | { kind: "writing"; key: string; writing: Writing; continued: boolean }
  | { kind: "draft"; key: string; draft: CallDraft }
  | { kind: "pending"; key: string; pending: Pending; continued: boolean };

/** How long after a message the next one of the same author belongs to it. */
const TOGETHER_MILLISECONDS = 5 * 60_000;

/**
 * A row for each message of the window. `mark` is how far the person had read when they came, if that matters.
 *
 * Where there are earlier messages, the first of the window has no row: whether it begins a day, or goes on with what its
 * author said, is known when they are. So a row that was drawn once looks the same for ever.
 */
export function messageRows(window: Message[], calls: Record<string, Call>, mark: number | null, dayOf: (at: string) => number): Row[] {
  const behind = callsByPlace(calls);
  const first = window[0]?.seq ?? 1;
  const rows: Row[] = [];
  if (first === 1) rows.push(...(behind.get(0) ?? []).map((call): Row => ({ kind: "call", key: call.id, call })));
  for (const [index, message] of window.entries()) {
    const before = window[index - 1];
    if (before === undefined && message.seq > 1) continue;
    const newDay = before === undefined || dayOf(before.created_at) !== dayOf(message.created_at);
    const firstUnread = mark !== null && message.seq === mark + 1;
    const continued =
      !newDay &&
      !firstUnread &&
      message.reply_to === null &&
      before.author.id === message.author.id &&
      before.deleted_at === null &&
      !behind.has(before.seq) &&
      Date.parse(message.created_at) - Date.parse(before.created_at) < TOGETHER_MILLISECONDS;
    rows.push({ kind: "message", key: message.id, message, newDay, firstUnread, continued, calls: behind.get(message.seq) ?? [] });
  }
  return rows;
}

/** What comes after the last message: what is being written, and what was sent and is not confirmed. */
export function tailRows(last: Message | undefined, me: string, writing: Writing[], drafts: CallDraft[], pending: Pending[]): Row[] {
  const rows: Row[] = [];
  let author = last?.author.id;
  for (const each of pending) {
    rows.push({ kind: "pending", key: each.key, pending: each, continued: author === me && each.replyTo === null });
    author = me;
  }
  for (const each of drafts) rows.push({ kind: "draft", key: each.id, draft: each });
  for (const each of writing) {
    rows.push({ kind: "writing", key: each.id, writing: each, continued: author === each.agent && drafts.length === 0 && each.replyTo === null });
    author = each.agent;
  }
  return rows;
}

// Which of them are drawn

/** From which message to which; with the last one goes what comes after it. */
export interface Part {
  from: number;
  to: number;
}

/** Where a drawn row stands, in pixels below the upper edge of the screen. */
export interface Span {
  top: number;
  bottom: number;
}

/** So many rows are drawn at once. */
const STEP = 20;
/** More is drawn when less than this is left beyond the edge of the screen. */
export const NEAR = 800;
/** What is this far beyond the edge is kept; what is more than twice as far is not. */
const FAR = 2_500;

/** To begin with: what lies around a message, or before the end. */
export function partAround(seq: number): Part {
  return { from: seq - STEP, to: seq + STEP };
}

export function partBefore(end: number): Part {
  return { from: end - STEP, to: Infinity };
}

export function rowsIn(rows: Row[], { from, to }: Part): Row[] {
  return rows.filter((row) => placeOf(row) >= from && placeOf(row) <= to);
}

/** The part that is to be drawn for someone who sees `drawn` standing at `spans` on a screen of that height. */
export function nextPart(part: Part, rows: Row[], drawn: Row[], spans: Span[], height: number): Part {
  if (drawn.length === 0) return part;
  const above = -spans[0]!.top;
  const below = spans.at(-1)!.bottom - height;
  const first = placeOf(rows[0]!);
  const last = placeOf(rows.findLast((row) => row.kind === "message") ?? rows[0]!);
  let { from, to } = part;
  if (above < NEAR && from > first) from = Math.max(first, from - STEP);
  else if (above > 2 * FAR) from = placeOf(drawn[spans.findIndex((span) => span.bottom > -FAR)]!);
  if (below < NEAR) to = to + STEP < last ? to + STEP : Infinity;
  else if (below > 2 * FAR) to = placeOf(drawn[spans.findLastIndex((span) => span.top < height + FAR)]!);
  return from === part.from && to === part.to ? part : { from, to };
}

/** The number of its message; what is being said comes after all, and a call before the first message before all. */
function placeOf(row: Row): number {
  return row.kind === "message" ? row.message.seq : row.kind === "call" ? 0 : Infinity;
}

/** The number of the last message that can be seen to its end. */
export function lastSeen(drawn: Row[], spans: Span[], height: number): number | null {
  for (let index = spans.findLastIndex((span) => span.bottom < height + 4); index >= 0; index -= 1) {
    const row = drawn[index];
    if (row?.kind === "message") return row.message.seq;
  }
  return null;
}

function callsByPlace(calls: Record<string, Call>): Map<number, Call[]> {
  const places = new Map<number, Call[]>();
  for (const call of Object.values(calls)) {
    const there = places.get(call.after_seq);
    if (there) there.push(call);
    else places.set(call.after_seq, [call]);
  }
  for (const there of places.values()) there.sort((a, b) => Date.parse(a.created_at) - Date.parse(b.created_at) || (a.id < b.id ? -1 : 1));
  return places;
}
