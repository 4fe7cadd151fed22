/** What stands in a conversation, row by row. Pure: a function of the state, so that the list can be drawn in parts. */
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

/** A row for each message of the window. `mark` is how far the person had read when they came, if that matters. */
export function messageRows(window: Message[], calls: Record<string, Call>, mark: number | null, dayOf: (at: string) => number): Row[] {
  const behind = callsByPlace(calls);
  const first = window[0]?.seq ?? 1;
  const rows: Row[] = [];
  if (first === 1) rows.push(...(behind.get(0) ?? []).map((call): Row => ({ kind: "call", key: call.id, call })));
  for (const [index, message] of window.entries()) {
    const before = window[index - 1];
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
