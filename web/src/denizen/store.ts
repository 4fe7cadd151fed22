/**
 * What a person has on the screen, as a pure function of what they were told: `reduce(state, event) -> state`.
 *
 * Messages of a space are numbered without holes, so that of each space we keep one run of them, the window: it is
 * complete from its first to its last, and whether more lies before or behind it is a comparison of numbers. Telling
 * the same twice, or late, changes nothing: of two states of a message or a call, the newer one stays.
 */
import type { Call, Me, Message, Round, Space } from "./api.ts";
import type { Notice, Status, StreamEvent } from "./events.ts";
import type { Attachment } from "./files.ts";
import { deltaTold, messageTold, NO_PANEL, type PanelState, replyTold, roundsAnswered, roundTold } from "./panels.ts";

/** Text that an agent is writing; `id` is that of the message it will be. */
export interface Writing {
  id: string;
  agent: string;
  space: string;
  replyTo: string | null;
  text: string;
  /** Of `text`, in code points: where the next piece begins. */
  length: number;
}

/** Arguments that an agent is writing for a call that people see. */
export interface CallDraft {
  id: string;
  agent: string;
  space: string;
  tool: string;
  text: string;
  length: number;
}

/** Something the person said that the server has not confirmed. */
export interface Pending {
  key: string;
  /** Of the message it will be; known a moment after it was said. */
  id?: string;
  space: string;
  text: string;
  replyTo: string | null;
  /** Uploads that are finished. */
  files?: Attachment[];
  at: string;
  /** `waiting`: it did not get through, and is sent by itself. `failed`: the server refused it. */
  state: "sending" | "waiting" | "failed";
  /** What the server said to that; none where it could not be asked. */
  error?: string | undefined;
}

export interface Presence {
  status: Status;
  doing: string | null;
  epoch: number | null;
}

export interface SpaceState {
  info: Space;
  /** A run of messages without a hole, the oldest first; null before any were read. */
  window: Message[] | null;
  /** How often changes to the window may have been missed since it was last read again; 0: it is as it should be. */
  stale: number;
  /** Messages that were changed while someone may have been reading a page with what they said before. */
  changes: Record<string, Message>;
  calls: Record<string, Call>;
  /** Up to which message an agent had heard when it last went to sleep. */
  passed: Record<string, number>;
}

export type Connection = "connecting" | "open" | "lost";

export interface State {
  me: Me | null;
  connection: Connection;
  /** How often the stream has begun. A page that was asked for before the last time may be older than what was missed. */
  begun: number;
  /** Whether the list of spaces has been read. */
  loaded: boolean;
  /** Why the server does not give that list, although it is connected. */
  trouble: string | null;
  spaces: Record<string, SpaceState>;
  presence: Record<string, Presence>;
  writing: Record<string, Writing>;
  drafts: Record<string, CallDraft>;
  pending: Pending[];
  /** By the id of the space. */
  panels: Record<string, PanelState>;
  /** How often it was told that what a conversation came to is another by now. */
  came: Record<string, number>;
  /** The statuses that the stream has told since it began, by space: newer than any list of spaces. */
  statuses: Record<string, Space["statuses"]>;
  /** Who was last told to be typing in a room elsewhere, by space. It holds for a few seconds, or until they wrote. */
  typing: Record<string, { name: string }>;
  /** What the person was told beside what was said in spaces, the newest last. */
  notices: readonly Notice[];
}

/** What the client itself knows, beside what the stream tells. */
export type Action =
  | StreamEvent
  | { type: "me"; me: Me | null }
  | { type: "connection"; connection: Connection }
  | { type: "trouble"; trouble: string | null }
  | { type: "resumed" }
  | { type: "spaces"; spaces: Space[] }
  | { type: "space"; space: Space }
  | { type: "page"; space: string; messages: Message[]; replace?: boolean }
  | { type: "refreshed"; space: string; messages: Message[]; stale: number }
  | { type: "calls"; space: string; calls: Call[] }
  | { type: "read"; space: string; seq: number }
  | { type: "rounds"; panel: string; rounds: Round[]; since: number; begun: number }
  | { type: "presences"; agents: { id: string; status: Status }[] }
  | { type: "send"; pending: Pending }
  | { type: "named"; key: string; id: string }
  | { type: "sent"; key: string; message: Message }
  | { type: "unsent"; key: string; error: string }
  | { type: "waiting"; key: string; error?: string | undefined }
  | { type: "dropped"; key: string };

export const EMPTY: State = {
  me: null,
  connection: "connecting",
  begun: 0,
  loaded: false,
  trouble: null,
  spaces: {},
  presence: {},
  writing: {},
  drafts: {},
  pending: [],
  panels: {},
  came: {},
  statuses: {},
  typing: {},
  notices: [],
};

export function reduce(state: State, action: Action): State {
  switch (action.type) {
    case "me":
      return action.me === null ? EMPTY : { ...state, me: action.me };
    case "connection":
      return state.connection === action.connection ? state : { ...state, connection: action.connection };
    case "trouble":
      return state.trouble === action.trouble ? state : { ...state, trouble: action.trouble };
    case "spaces":
      return withSpaces(state, action.spaces);
    case "space":
      return withSpace(state, action.space);
    case "page":
      return within(arrived(state, action.messages), action.space, (space) => withPage(space, action.messages, action.replace ?? false));
    case "refreshed":
      return within(arrived(state, action.messages), action.space, (space) => refreshed(space, action.messages, action.stale));
    case "calls":
      return within(state, action.space, (space) => action.calls.reduce(withCall, space));
    case "read":
      return within(state, action.space, (space) => withRead(space, action.seq));
    case "rounds":
      // What was asked for before the stream began anew may be older than what it told of the rounds that are known.
      return inPanel(state, action.panel, (panel) =>
        roundsAnswered(panel, action.begun === state.begun ? action.rounds : action.rounds.filter((each) => !(each.id in panel.rounds)), action.since),
      );
    case "panel.round":
      return inPanel(state, action.panel, (panel) => roundTold(panel, action));
    case "panel.reply":
      return inPanel(state, action.panel, (panel) => replyTold(panel, action));
    case "panel.delta":
      return inPanel(state, action.panel, (panel) => deltaTold(panel, action));
    case "panel.changed":
      return inPanel(state, action.panel, (panel) => ({ ...panel, changed: panel.changed + 1 }));
    case "presences":
      return { ...state, presence: withPresences(state.presence, action.agents) };
    case "send":
      return { ...state, pending: queued(state.pending, action.pending) };
    case "named":
      return { ...state, pending: state.pending.map((each) => (each.key === action.key ? { ...each, id: action.id } : each)) };
    case "sent":
      return said({ ...state, pending: state.pending.filter((each) => each.key !== action.key) }, action.message);
    case "unsent":
      return { ...state, pending: state.pending.map((each) => (each.key === action.key ? { ...each, state: "failed", error: action.error } : each)) };
    case "waiting":
      return { ...state, pending: state.pending.map((each) => (each.key === action.key ? { ...each, state: "waiting", error: action.error } : each)) };
    case "dropped":
      return { ...state, pending: state.pending.filter((each) => each.key !== action.key) };
    case "message":
      return said(wrote(state, action.message), action.message);
    case "typing":
      return { ...state, typing: { ...state.typing, [action.space]: { name: action.name } } };
    case "message.edited":
    case "message.deleted":
      return inPanel(
        within(state, action.message.space_id, (space) => replaced(space, action.message)),
        action.message.space_id,
        (panel) => messageTold(panel, action.message),
      );
    case "stream.started":
      return started(state, action);
    case "stream.delta":
      return continued(state, "writing", action);
    case "stream.aborted":
      return { ...state, writing: without(state.writing, action.id) };
    case "agent.status":
      return withStatus(state, action);
    case "call":
      return withCallTold(state, action.call);
    case "call.started":
      return callStarted(state, action);
    case "call.delta":
      return continued(state, "drafts", action);
    case "ready":
      return Object.entries(action.read ?? {}).reduce(
        (now, [id, seq]) => within(now, id, (space) => withRead(space, seq)),
        ready(state, action.spaces),
      );
    case "resumed":
      return resumed(state);
    case "space.read":
      return within(state, action.space, (space) => withRead(space, action.read_seq));
    case "space.joined":
    case "space.changed":
      return toldOf(state, action);
    case "metadata.update":
      if (!action.rolling_memory) return state;
      return { ...state, came: { ...state.came, [action.space]: (state.came[action.space] ?? 0) + 1 } };
    case "space.statuses":
      return withStatuses(state, action);
    case "notice":
      return { ...state, notices: [...state.notices.slice(-19), action] };
    case "space.left":
      return { ...state, spaces: without(state.spaces, action.space), statuses: without(state.statuses, action.space) };
  }
}

// What is on the screen, from the state

/** The spaces by name: they stay where they are, whoever speaks. */
export function inOrder(spaces: Record<string, SpaceState>): SpaceState[] {
  return Object.values(spaces).sort((a, b) => a.info.name.localeCompare(b.info.name) || (a.info.id < b.info.id ? -1 : 1));
}

export function unread(space: SpaceState): number {
  return Math.max(space.info.last_seq - space.info.read_seq, 0);
}

export function firstSeq(space: SpaceState): number | null {
  return space.window?.[0]?.seq ?? null;
}

export function lastSeq(space: SpaceState): number | null {
  return space.window?.at(-1)?.seq ?? null;
}

/** Whether there are messages before the window. */
export function hasEarlier(space: SpaceState): boolean {
  const first = firstSeq(space);
  return first !== null && first > 1;
}

/** Whether there are messages behind the window. */
export function hasLater(space: SpaceState): boolean {
  return space.window !== null && (lastSeq(space) ?? 0) < space.info.last_seq;
}

// Spaces

function within(state: State, id: string, change: (space: SpaceState) => SpaceState): State {
  const space = state.spaces[id];
  if (space === undefined) return state;
  const changed = change(space);
  return changed === space ? state : { ...state, spaces: { ...state.spaces, [id]: changed } };
}

/** What is sent again keeps its place: what was written first is sent first. */
function queued(pending: Pending[], one: Pending): Pending[] {
  const known = pending.some((each) => each.key === one.key);
  return known ? pending.map((each) => (each.key === one.key ? one : each)) : [...pending, one];
}

function inPanel(state: State, id: string, change: (panel: PanelState) => PanelState): State {
  const panel = state.panels[id] ?? NO_PANEL;
  const changed = change(panel);
  return changed === panel ? state : { ...state, panels: { ...state.panels, [id]: changed } };
}

function newSpace(info: Space): SpaceState {
  return { info, window: null, stale: 0, changes: {}, calls: {}, passed: {} };
}

function withSpaces(state: State, told: Space[]): State {
  const known = new Set(told.map((each) => each.id));
  const kept = Object.fromEntries(Object.entries(state.spaces).filter(([id]) => known.has(id)));
  return { ...told.reduce(withSpace, { ...state, spaces: kept }), loaded: true };
}

function withSpace(state: State, told: Space): State {
  // An answer may be older than what the stream has told meanwhile.
  const info = { ...told, statuses: state.statuses[told.id] ?? told.statuses };
  const known = state.spaces[info.id];
  if (known === undefined) return { ...state, spaces: { ...state.spaces, [info.id]: newSpace(info) } };
  const last_seq = Math.max(info.last_seq, known.info.last_seq);
  return { ...state, spaces: { ...state.spaces, [info.id]: { ...known, info: { ...info, last_seq } } } };
}

/** Also of a space that is not known yet: the list that has it may have been made before. */
function wrote(state: State, { space_id, author }: Message): State {
  return state.typing[space_id]?.name === author.name ? { ...state, typing: without(state.typing, space_id) } : state;
}

function withStatuses(state: State, { space: id, statuses }: { space: string; statuses: Space["statuses"] }): State {
  const told = { ...state, statuses: { ...state.statuses, [id]: statuses } };
  return within(told, id, (space) => ({ ...space, info: { ...space.info, statuses } }));
}

function toldOf(state: State, told: { space: string; kind: Space["kind"]; name: string; private: boolean; last_seq: number }): State {
  const known = state.spaces[told.space];
  const { kind, name, private: hidden, last_seq } = told;
  if (known === undefined) {
    // Who is in it, since when, and how far it was read is asked for; until then nothing in it counts as unread.
    const info: Space = { id: told.space, kind, name, private: hidden, floor: "one", agent_run_limit: 0, stopped: false, last_seq, read_seq: last_seq, unread: 0, unread_mentions: 0, members: [], statuses: [], created_at: "" };
    return { ...state, spaces: { ...state.spaces, [told.space]: newSpace(info) } };
  }
  const info = { ...known.info, kind, name, private: hidden, last_seq: Math.max(last_seq, known.info.last_seq) };
  return { ...state, spaces: { ...state.spaces, [told.space]: { ...known, info } } };
}

function withRead(space: SpaceState, seq: number): SpaceState {
  return space.info.read_seq === seq ? space : { ...space, info: { ...space.info, read_seq: seq } };
}

/** After this, what happens is told again: what was half told before is void, and changes may have been missed. */
/** The texts in progress are told again from their beginnings. */
function resumed(state: State): State {
  const panels = Object.fromEntries(Object.entries(state.panels).map(([id, panel]) => [id, { ...panel, speaking: {} }]));
  return { ...state, writing: {}, drafts: {}, panels };
}

function ready(state: State, ids: string[]): State {
  const here = new Set(ids);
  const spaces: Record<string, SpaceState> = {};
  for (const [id, space] of Object.entries(state.spaces)) {
    if (here.has(id)) spaces[id] = space.window === null ? space : { ...space, stale: space.stale + 1, changes: {} };
  }
  return { ...resumed(state), connection: "open", begun: state.begun + 1, spaces, statuses: {} };
}

// Messages

/** What is among these messages is neither pending nor being written any more. */
function arrived(state: State, messages: Message[]): State {
  const ids = new Set(messages.map((each) => each.id));
  const pending = state.pending.filter((each) => each.id === undefined || !ids.has(each.id));
  const written = Object.keys(state.writing).filter((id) => ids.has(id));
  if (pending.length === state.pending.length && written.length === 0) return state;
  return { ...state, pending, writing: written.reduce(without<Writing>, state.writing) };
}

function said(state: State, message: Message): State {
  const mine = state.me !== null && message.author.id === state.me.id;
  return within(arrived(state, [message]), message.space_id, (space) => {
    const grown = merged(space, [message]);
    const last_seq = Math.max(grown.info.last_seq, message.seq);
    // Whoever says something has read up to it.
    const read_seq = mine ? Math.max(grown.info.read_seq, message.seq) : grown.info.read_seq;
    if (last_seq === grown.info.last_seq && read_seq === grown.info.read_seq) return grown;
    return { ...grown, info: { ...grown.info, last_seq, read_seq } };
  });
}

function withPage(space: SpaceState, messages: Message[], replace: boolean): SpaceState {
  if (space.window === null || replace) {
    const known = new Map((space.window ?? []).map((each) => [each.id, each]));
    const window = messages.map((each) => newer(known.get(each.id) ?? space.changes[each.id], each));
    return { ...space, window, stale: replace ? 0 : space.stale };
  }
  return merged(space, messages);
}

/** The window was read again, after changes had been missed `stale` times; another time since then still counts. */
function refreshed(space: SpaceState, messages: Message[], stale: number): SpaceState {
  return { ...merged(space, messages), stale: space.stale === stale ? 0 : space.stale };
}

/** The window with these messages, as far as they lie in it or adjoin it; others would leave a hole. */
function merged(space: SpaceState, messages: Message[]): SpaceState {
  if (space.window === null || messages.length === 0) return space;
  const window = space.window;
  const ordered = messages.map((each) => newer(space.changes[each.id], each)).sort((a, b) => a.seq - b.seq);
  if (window.length === 0) return ordered[0]?.seq === 1 ? { ...space, window: ordered } : space;
  let first = window[0]!.seq;
  let last = window.at(-1)!.seq;
  let changed: Message[] | null = null;
  for (const message of ordered) {
    if (message.seq === last + 1) {
      changed = changed ?? [...window];
      changed.push(message);
      last += 1;
    } else if (message.seq >= first && message.seq <= last) {
      const known = (changed ?? window)[message.seq - first]!;
      const best = newer(known, message);
      if (best !== known) {
        changed = changed ?? [...window];
        changed[message.seq - first] = best;
      }
    }
  }
  const before = ordered.filter((each) => each.seq < first);
  if (before.length > 0 && before.at(-1)!.seq === first - 1) {
    changed = [...before, ...(changed ?? window)];
    first = before[0]!.seq;
  }
  return changed === null ? space : { ...space, window: changed };
}

const REMEMBERED_CHANGES = 300;

function replaced(space: SpaceState, message: Message): SpaceState {
  const kept = Object.entries(space.changes).slice(-REMEMBERED_CHANGES);
  const changes = { ...Object.fromEntries(kept), [message.id]: newer(space.changes[message.id], message) };
  const first = firstSeq(space);
  const known = first === null ? undefined : space.window![message.seq - first];
  const next = { ...space, changes };
  return known === undefined ? next : merged(next, [message]);
}

/** Of two states of a message the one that came later: nothing is undeleted, and edits grow. */
export function newer(known: Message | undefined, told: Message): Message {
  if (known === undefined) return told;
  if (known.deleted_at !== null) return known;
  if (told.deleted_at !== null) return told;
  return lastChange(told) > lastChange(known) ? told : known;
}

/** When the text, the reactions or the pin of a message last changed. */
function lastChange({ edited_at, marked_at }: Message): string {
  const [edited, marked] = [moment(edited_at), moment(marked_at ?? null)];
  return edited > marked ? edited : marked;
}

/** A time that can be compared to the microsecond, which the database knows and `Date` does not. */
function moment(at: string | null): string {
  if (at === null) return "";
  const [, whole, fraction = ""] = /^([^.Z+]*)(?:\.(\d+))?/.exec(at)!;
  return `${whole}.${fraction.padEnd(6, "0")}`;
}

// What is being written

function started(state: State, told: { id: string; agent: string; space: string; reply_to: string | null }): State {
  const space = state.spaces[told.space];
  if (space?.window?.some((each) => each.id === told.id)) return state;
  const fresh: Writing = { id: told.id, agent: told.agent, space: told.space, replyTo: told.reply_to, text: "", length: 0 };
  return { ...state, writing: { ...state.writing, [told.id]: fresh } };
}

function callStarted(state: State, told: { id: string; agent: string; space: string; tool: string }): State {
  if (state.spaces[told.space]?.calls[told.id] !== undefined) return state;
  const fresh: CallDraft = { id: told.id, agent: told.agent, space: told.space, tool: told.tool, text: "", length: 0 };
  return { ...state, drafts: { ...state.drafts, [told.id]: fresh } };
}

function continued(state: State, where: "writing" | "drafts", told: { id: string; offset: number; text: string }): State {
  const known = state[where][told.id];
  if (known === undefined || told.offset > known.length) return state;
  const added = codePoints(told.text);
  // Told again: nothing changes.
  if (told.offset + added <= known.length) return state;
  const kept = told.offset === known.length ? known.text : [...known.text].slice(0, told.offset).join("");
  const grown = { ...known, text: kept + told.text, length: told.offset + added };
  return { ...state, [where]: { ...state[where], [told.id]: grown } };
}

function codePoints(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

// Calls

function withCallTold(state: State, call: Call): State {
  const drafts = call.id in state.drafts ? without(state.drafts, call.id) : state.drafts;
  const next = drafts === state.drafts ? state : { ...state, drafts };
  return call.space_id === null ? next : within(next, call.space_id, (space) => withCall(space, call));
}

function withCall(space: SpaceState, call: Call): SpaceState {
  const known = space.calls[call.id];
  // What is settled stays settled, whatever is told late.
  if (known !== undefined && known.settled_at !== null && call.settled_at === null) return space;
  return { ...space, calls: { ...space.calls, [call.id]: call } };
}

// Agents

function withPresences(known: Record<string, Presence>, agents: { id: string; status: Status }[]): Record<string, Presence> {
  const next = { ...known };
  // What the stream told is newer than a list that was asked for.
  for (const { id, status } of agents) next[id] ??= { status, doing: null, epoch: null };
  return next;
}

function withStatus(state: State, told: { agent: string; status: Status; epoch: number | null; doing?: string | null }): State {
  const known = state.presence[told.agent];
  const now: Presence = { status: told.status, doing: told.doing ?? null, epoch: told.epoch };
  if (known && known.status === now.status && known.doing === now.doing && known.epoch === now.epoch) return state;
  const next: State = { ...state, presence: { ...state.presence, [told.agent]: now } };
  if (told.status === "alive") return next;
  // Whoever thinks no more writes no more.
  next.drafts = Object.fromEntries(Object.entries(next.drafts).filter(([, each]) => each.agent !== told.agent));
  return known?.status === "alive" && told.status === "sleeping" ? passedBy(next, told.agent) : next;
}

/** The agent was awake and is not any more: what was said until then it has read, also what is on its way back to us. */
function passedBy(state: State, agent: string): State {
  const spaces = { ...state.spaces };
  for (const [id, space] of Object.entries(spaces)) {
    const underway = state.pending.filter((each) => each.space === id && each.state === "sending").length;
    spaces[id] = { ...space, passed: { ...space.passed, [agent]: space.info.last_seq + underway } };
  }
  return { ...state, spaces };
}

function without<T>(record: Record<string, T>, id: string): Record<string, T> {
  const { [id]: _, ...rest } = record;
  return rest;
}
