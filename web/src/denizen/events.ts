/** The events of `GET /api/stream`. Their types are generated from the description of the HTTP API (`make schema`). */
import type { Call, Message, Schemas } from "./api.ts";

export type Status = Schemas["AgentStatus"]["status"];
export type Notice = Schemas["Notice"];
export type PanelReply = Schemas["PanelReply"];
export type PanelDelta = Schemas["PanelDelta"];

type Sent = Required<Schemas["PersonStreamEvents"]>;

/** The names of the events that the web client reads. */
export const NAMES = [
  "message",
  "message.edited",
  "message.deleted",
  "stream.started",
  "stream.delta",
  "stream.aborted",
  "agent.status",
  "call",
  "call.started",
  "call.delta",
  "ready",
  "space.joined",
  "space.left",
  "space.changed",
  "space.statuses",
  "space.read",
  "typing",
  "panel.round",
  "panel.reply",
  "panel.delta",
  "panel.changed",
  "metadata.update",
  "notice",
] as const satisfies readonly (keyof Sent)[];
export type Name = (typeof NAMES)[number];

type Data<T> = T extends Message ? { message: T } : T extends Call ? { call: T } : T;
/** An event with its name as `type`. A message or a call is in a field of its own. */
export type StreamEvent = { [N in Name]: Data<Sent[N]> & { type: N } }[Name];

export function isName(name: string): name is Name {
  return (NAMES as readonly string[]).includes(name);
}

/** An event of the stream from its name and its data. */
export function parse(name: Name, data: string): StreamEvent {
  const told = JSON.parse(data);
  if (name === "message" || name === "message.edited" || name === "message.deleted") return { type: name, message: told };
  if (name === "call") return { type: name, call: told };
  return { ...told, type: name };
}
