/** The events of `GET /api/stream`, as docs/streams.md tells them. `message` and its kin carry what they tell of. */
import type { Call, Message, Reply, Round, Schemas } from "./api.ts";

export type Status = Schemas["AgentOut"]["status"];

export interface StreamStarted {
  type: "stream.started";
  id: string;
  agent: string;
  space: string;
  epoch: number;
  reply_to: string | null;
}
export interface StreamDelta {
  type: "stream.delta";
  id: string;
  agent: string;
  epoch: number;
  /** In Unicode code points. */
  offset: number;
  text: string;
}
export interface StreamAborted {
  type: "stream.aborted";
  id: string;
  agent: string;
  epoch: number;
  reason: string;
}
export interface AgentStatus {
  type: "agent.status";
  agent: string;
  status: Status;
  epoch: number | null;
  doing?: string | null;
}
export interface CallStarted {
  type: "call.started";
  id: string;
  agent: string;
  space: string;
  epoch: number;
  tool: string;
}
export interface CallDelta {
  type: "call.delta";
  id: string;
  agent: string;
  epoch: number;
  offset: number;
  text: string;
}
export interface Ready {
  type: "ready";
  spaces: string[];
  /** How far one has read, by the id of the space. */
  read?: Record<string, number>;
}
/** One has read up to there, here or on another device. */
export interface SpaceRead {
  type: "space.read";
  space: string;
  read_seq: number;
}
export interface SpaceTold {
  type: "space.joined" | "space.changed";
  space: string;
  kind: Schemas["SpaceOut"]["kind"];
  name: string;
  private: boolean;
  last_seq: number;
}
/** All that a space shows of agents that have not answered there, in place of what was known. */
export interface SpaceStatuses {
  type: "space.statuses";
  space: string;
  statuses: Schemas["SpaceOut"]["statuses"];
}
export interface SpaceLeft {
  type: "space.left";
  space: string;
}
export interface MetadataUpdate {
  type: "metadata.update";
  space: string;
  rolling_memory: Schemas["ConversationMemory"];
}

export type RoundTold = Omit<Round, "type"> & { type: "panel.round" };
export interface PanelReply {
  type: "panel.reply";
  panel: string;
  round: string;
  all_completed: boolean;
  reply: Reply;
}
export interface PanelDelta {
  type: "panel.delta";
  panel: string;
  round: string;
  advisor: string;
  part: Reply["part"];
  epoch: number;
  /** In Unicode code points. */
  offset: number;
  text: string;
  thinking: boolean;
}
export interface PanelChanged {
  type: "panel.changed";
  panel: string;
}

/** Something that this person should know, in a sentence. */
export interface Notice {
  type: "notice";
  kind: string;
  text: string;
}

export type StreamEvent =
  | { type: "message" | "message.edited" | "message.deleted"; message: Message }
  | { type: "call"; call: Call }
  | StreamStarted
  | StreamDelta
  | StreamAborted
  | AgentStatus
  | CallStarted
  | CallDelta
  | Ready
  | SpaceTold
  | SpaceLeft
  | SpaceStatuses
  | SpaceRead
  | RoundTold
  | PanelReply
  | PanelDelta
  | PanelChanged
  | MetadataUpdate
  | Notice;

/** Every event of the stream by its name. */
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
  "panel.round",
  "panel.reply",
  "panel.delta",
  "panel.changed",
  "metadata.update",
  "notice",
] as const;

export function isName(name: string): name is (typeof NAMES)[number] {
  return (NAMES as readonly string[]).includes(name);
}

/** An event of the stream from its name and its data. */
export function parse(name: (typeof NAMES)[number], data: string): StreamEvent {
  const told = JSON.parse(data);
  if (name === "message" || name === "message.edited" || name === "message.deleted") return { type: name, message: told };
  if (name === "call") return { type: name, call: told };
  return { ...told, type: name };
}
