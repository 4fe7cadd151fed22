/** What of the stream is worth a notification: mentions, answers one waited for, questions. Pure. */
import type { Call, Message } from "../denizen/api.ts";
import type { StreamEvent } from "../denizen/events.ts";
import type { SpaceState, State } from "../denizen/store.ts";
import { question, readable } from "../spaces/calls.ts";

export interface News {
  /** The same news in another tab has the same. */
  tag: string;
  title: string;
  body: string;
  path: string;
  /** The question that can be answered from the notification with yes or no: all of it is in the body. */
  call?: string;
}

const LONGEST = 240;

export function newsOf(event: StreamEvent, state: State): News | null {
  if (event.type === "message") return ofMessage(event.message, state);
  if (event.type === "call") return ofCall(event.call, state);
  return null;
}

function ofMessage(message: Message, { me, spaces }: State): News | null {
  if (me === null || message.author.id === me.id || message.deleted_at !== null) return null;
  const space = spaces[message.space_id];
  const mentioned = message.mentions.includes(me.handle) || message.mentions.includes(me.id);
  if (!mentioned && !answers(message, me.id, space)) return null;
  const where = space && space.info.name ? ` in ${space.info.name}` : "";
  return {
    tag: message.id,
    title: `${message.author.name}${where}`,
    body: shortened(message.plain || message.text),
    path: `/s/${message.space_id}/m/${message.seq}`,
  };
}

/** Whether an agent says what the person waits for: in reply to them, or after them, or where nobody else is. */
function answers(message: Message, me: string, space: SpaceState | undefined): boolean {
  if (message.author.kind !== "agent" || !space) return false;
  const before = (space.window ?? []).filter((each) => each.seq < message.seq);
  const replied = message.reply_to !== null && before.find((each) => each.id === message.reply_to);
  if (replied) return replied.author.id === me;
  const last = before.findLast((each) => each.author.kind === "human");
  if (last) return last.author.id === me;
  return space.info.members.filter((each) => each.kind === "human").every((each) => each.id === me);
}

function ofCall(call: Call, { me, spaces }: State): News | null {
  if (me === null || call.state !== "waiting" || !["pause", "async", "elicitation"].includes(call.mode) || call.space_id === null) return null;
  const space = spaces[call.space_id];
  const name = space?.info.members.find((each) => each.id === call.agent_id)?.name ?? "An agent";
  // What is approved must be what is read.
  const asked = call.approval ? `${call.tool}\n${readable(call.arguments)}` : readable(question(call.arguments));
  const body = call.why ? `${call.why}\n${asked}` : asked;
  const news: News = { tag: call.id, title: call.approval ? `${name} asks for approval` : `${name} asks`, body: shortened(body), path: `/s/${call.space_id}` };
  return body.length <= LONGEST ? { ...news, call: call.id } : news;
}

function shortened(text: string): string {
  return text.length <= LONGEST ? text : `${text.slice(0, LONGEST - 1)}…`;
}
