import assert from "node:assert/strict";
import { test } from "node:test";
import type { Call, Me, Message, Space } from "./api.ts";
import type { StreamEvent } from "./events.ts";
import { messageId } from "./ids.ts";
import { type Action, EMPTY, firstSeq, hasEarlier, hasLater, lastSeq, reduce, type State, unread, type Pending } from "./store.ts";

const NOOR = { id: "noor", handle: "noor", name: "Noor", kind: "human", role: "owner" } as Me;
const SPACE = "kitchen";

function space(last_seq: number, more: Partial<Space> = {}): Space {
  return { id: SPACE, kind: "conversation", name: "Kitchen", private: false, floor: "one", agent_run_limit: 12, stopped: false, created_at: "", last_seq, read_seq: 0, unread: last_seq, unread_mentions: 0, members: [], statuses: [], ...more };
}

function message(seq: number, more: Partial<Message> = {}): Message {
  const author = { id: "sam", kind: "human", name: "Sam" };
  const none = { reply_to: null, edited_at: null, deleted_at: null, outside: false };
  return { id: `m${seq}`, space_id: SPACE, seq, author, text: `text ${seq}`, plain: "", mentions: [], metadata: {}, created_at: "2026-01-05T09:00:00Z", ...none, ...more };
}

function state(...actions: Action[]): State {
  return actions.reduce(reduce, { ...EMPTY, me: NOOR });
}

const texts = (now: State): string[] => (now.spaces[SPACE]?.window ?? []).map((each) => each.text);

test("a page that does not adjoin the window leaves it as it is, and no hole", () => {
  const now = state(
    { type: "spaces", spaces: [space(9)] },
    { type: "page", space: SPACE, messages: [message(5), message(6)] },
    { type: "page", space: SPACE, messages: [message(8), message(9)] },
    { type: "page", space: SPACE, messages: [message(2), message(3)] },
  );
  assert.deepEqual(texts(now), ["text 5", "text 6"]);
  assert.ok(hasEarlier(now.spaces[SPACE]!));
  assert.ok(hasLater(now.spaces[SPACE]!));
});

test("what one says is read up to it, and takes the place of what was pending", () => {
  const pending = { key: "k", space: SPACE, text: "Hello", replyTo: null, at: "", state: "sending" as const };
  const said = message(3, { author: { id: "noor", kind: "human", name: "Noor" } });
  const before = state(
    { type: "spaces", spaces: [space(2, { read_seq: 2 })] },
    { type: "page", space: SPACE, messages: [message(1), message(2)] },
    { type: "send", pending },
    { type: "named", key: "k", id: "m3" },
  );
  for (const told of [
    [{ type: "message", message: said }],
    [{ type: "sent", key: "k", message: said }],
    [{ type: "message", message: said }, { type: "sent", key: "k", message: said }],
    [{ type: "sent", key: "k", message: said }, { type: "message", message: said }],
    // No answer came, but it was said.
    [{ type: "unsent", key: "k", error: "" }, { type: "message", message: said }],
    [{ type: "message", message: said }, { type: "unsent", key: "k", error: "" }],
    [{ type: "page", space: SPACE, messages: [said] }],
  ] as Action[][]) {
    const now = told.reduce(reduce, before);
    assert.deepEqual(now.pending, []);
    assert.equal(texts(now).length, 3);
    assert.equal(unread(now.spaces[SPACE]!), 0);
  }
  // What someone said in the same words elsewhere is not it.
  assert.equal(reduce(before, { type: "message", message: { ...said, id: "other", text: "Hello" } }).pending.length, 1);
});

test("the id of a message is known before it is posted", async () => {
  assert.equal(await messageId("0198c2f4-0000-7000-8000-000000000001", "letter-1"), "567ff2e0-bf81-5024-9ced-139a1accd4d0");
});

test("text grows by code points, and told twice it is the same", () => {
  const started: StreamEvent = { type: "stream.started", id: "m3", agent: "ada", space: SPACE, epoch: 1, reply_to: null, offset: 0 };
  const delta = (offset: number, text: string): StreamEvent => ({ type: "stream.delta", id: "m3", agent: "ada", epoch: 1, offset, text });
  const now = state({ type: "spaces", spaces: [space(0)] }, started, delta(0, "🦊🦊"), delta(2, " hi"), delta(0, "🦊🦊"), delta(9, "lost"), delta(2, " hi"), delta(5, "!"));
  assert.equal(now.writing["m3"]?.text, "🦊🦊 hi!");
  assert.deepEqual(reduce(now, { type: "message", message: message(1, { id: "m3" }) }).writing, {});
  assert.deepEqual(reduce(now, { type: "stream.aborted", id: "m3", agent: "ada", epoch: 1, reason: "" }).writing, {});
});

test("what is settled stays settled", () => {
  const call = { id: "c", agent_id: "ada", space_id: SPACE, after_seq: 1, state: "waiting", settled_at: null } as Call;
  const settled: Call = { ...call, state: "answered", settled_at: "2026-01-05T09:00:00Z" };
  const now = state({ type: "spaces", spaces: [space(1)] }, { type: "call", call: settled }, { type: "call", call }, { type: "calls", space: SPACE, calls: [call] });
  assert.equal(now.spaces[SPACE]?.calls["c"]?.state, "answered");
});

test("whoever is signed out has nothing on the screen", () => {
  assert.deepEqual(state({ type: "spaces", spaces: [space(1)] }, { type: "me", me: null }), EMPTY);
});

/** The same numbers for the same seed. */
function dice(seed: number): (sides: number) => number {
  let at = seed;
  return (sides) => {
    at = (at * 1664525 + 1013904223) % 4294967296;
    return Math.floor((at / 4294967296) * sides);
  };
}

/**
 * A space in a database, the stream that tells of it, and a client that is cut off, comes back, leafs, and is answered
 * late. Edits and deletions are told once, and to nobody who is away.
 */
class Story {
  readonly roll: (sides: number) => number;
  readonly database: Message[] = [];
  client: State = { ...EMPTY, me: NOOR };
  connected = false;
  told = 0; // the cursor
  late: { page: Action; begun: number }[] = [];
  clock = 0;

  constructor(seed: number) {
    this.roll = dice(seed);
    this.client = reduce(this.client, { type: "spaces", spaces: [space(0)] });
    this.connect(true);
  }

  tell(event: Action): void {
    this.client = reduce(this.client, event);
    // What comes twice, or in a batch with what came before, changes nothing.
    if (this.roll(4) === 0) this.client = reduce(this.client, event);
  }

  connect(fresh: boolean): void {
    this.connected = true;
    const last_seq = this.database.length;
    if (fresh) {
      this.told = last_seq;
      this.tell({ type: "space.joined", space: SPACE, kind: "conversation", name: "Kitchen", private: false, last_seq });
    }
    this.tell({ type: "ready", spaces: [SPACE], read: {} });
    this.follow();
  }

  follow(): void {
    for (; this.connected && this.told < this.database.length; this.told += 1) this.tell({ type: "message", message: this.database[this.told]! });
  }

  page(after: number, limit: number): Message[] {
    return this.database.slice(Math.max(0, after), after + limit);
  }

  step(): void {
    const some = this.database[this.roll(this.database.length || 1)];
    switch (this.roll(9)) {
      case 0:
      case 1:
        this.database.push(message(this.database.length + 1));
        this.follow();
        break;
      case 2:
        if (some && some.deleted_at === null) this.change({ ...some, text: `edited ${this.clock}`, edited_at: this.now() });
        break;
      case 3:
        if (some && some.deleted_at === null) this.change({ ...some, text: "", deleted_at: this.now() });
        break;
      case 4:
        this.connected = false;
        break;
      case 5:
        if (!this.connected) this.connect(this.roll(2) === 0);
        break;
      case 6: // asked now, answered some time
        this.late.push({
          page: { type: "page", space: SPACE, messages: this.page(this.roll(this.database.length + 1), 1 + this.roll(5)) },
          begun: this.client.begun,
        });
        break;
      case 7:
        if (this.late.length) this.answer(this.late.splice(this.roll(this.late.length), 1)[0]!);
        break;
      case 8:
        this.refresh();
    }
  }

  /** What was asked for before the stream began anew is asked for again. */
  answer({ page, begun }: { page: Action; begun: number }): void {
    if (begun === this.client.begun) this.tell(page);
  }

  change(changed: Message): void {
    this.database[changed.seq - 1] = changed;
    if (this.connected) this.tell({ type: changed.deleted_at ? "message.deleted" : "message.edited", message: changed });
  }

  /** What a client does when it sees that it may have missed something. */
  refresh(): void {
    const here = this.client.spaces[SPACE]!;
    if (!this.connected || here.stale === 0 || here.window === null) return;
    const first = firstSeq(here) ?? 1;
    this.tell({ type: "refreshed", space: SPACE, messages: this.page(first - 1, (lastSeq(here) ?? 0) - first + 1), stale: here.stale });
  }

  /** The reader is connected, has looked again, and has leafed to both ends. */
  settle(): void {
    if (!this.connected) this.connect(false);
    for (const each of this.late) this.answer(each);
    if (this.client.spaces[SPACE]!.window === null) this.tell({ type: "page", space: SPACE, messages: this.page(this.database.length - 3, 3) });
    this.refresh();
    for (let here = this.client.spaces[SPACE]!; hasEarlier(here) || hasLater(here); here = this.client.spaces[SPACE]!) {
      const first = firstSeq(here) ?? 1;
      if (hasEarlier(here)) this.tell({ type: "page", space: SPACE, messages: this.database.slice(Math.max(0, first - 3), first - 1) });
      else this.tell({ type: "page", space: SPACE, messages: this.page(lastSeq(here) ?? 0, 2) });
    }
  }

  now(): string {
    this.clock += 1;
    return `2026-01-05T09:00:00.${String(this.clock).padStart(6, "0")}Z`;
  }
}

test("whatever was missed, repeated, late or cut off, in the end the client has what the database has", () => {
  for (let seed = 1; seed <= 400; seed += 1) {
    const story = new Story(seed);
    for (let step = 0; step < 60; step += 1) {
      story.step();
      const window = story.client.spaces[SPACE]!.window ?? [];
      window.forEach((each, index) => assert.equal(each.seq, window[0]!.seq + index, `a hole, seed ${seed}`));
    }
    story.settle();
    assert.deepEqual(story.client.spaces[SPACE]!.window ?? [], story.database, `seed ${seed}`);
    assert.equal(story.client.spaces[SPACE]!.info.last_seq, story.database.length);
  }
});

test("what is read on another device is read here, also while one was away", () => {
  const seen: Action = { type: "spaces", spaces: [space(9)] };
  assert.equal(state(seen).spaces[SPACE]?.info.read_seq, 0);
  assert.equal(state(seen, { type: "space.read", space: SPACE, read_seq: 7, last_seq: 9, unread: 2 }).spaces[SPACE]?.info.read_seq, 7);
  assert.equal(state(seen, { type: "ready", spaces: [SPACE], read: { [SPACE]: 8 } }).spaces[SPACE]?.info.read_seq, 8);
  const elsewhere = state(seen, { type: "space.read", space: "attic", read_seq: 7, last_seq: 9, unread: 2 });
  assert.equal(elsewhere.spaces[SPACE]?.info.read_seq, 0);
});

test("what waits for a connection keeps its place when it is sent", () => {
  const pending = (key: string): Pending => ({ key, space: SPACE, text: key, replyTo: null, at: "", state: "sending" });
  const waiting = state({ type: "send", pending: pending("one") }, { type: "waiting", key: "one" }, { type: "send", pending: pending("two") });
  assert.deepEqual(
    waiting.pending.map((each) => [each.key, each.state]),
    [
      ["one", "waiting"],
      ["two", "sending"],
    ],
  );
  const sent = reduce(waiting, { type: "send", pending: pending("one") });
  assert.deepEqual(
    sent.pending.map((each) => [each.key, each.state]),
    [
      ["one", "sending"],
      ["two", "sending"],
    ],
  );
});

test("the statuses of a space are replaced by what is told", () => {
  const told = { agent_id: "bo", cause: "no_reply", text: "Bo read this and did not reply." } as Space["statuses"][number];
  const before = state({ type: "spaces", spaces: [space(1)] });
  const shown = reduce(before, { type: "space.statuses", space: SPACE, statuses: [told] });
  assert.deepEqual(shown.spaces[SPACE]?.info.statuses, [told]);
  assert.deepEqual(reduce(shown, { type: "space.statuses", space: SPACE, statuses: [] }).spaces[SPACE]?.info.statuses, []);
});

test("an older list of spaces does not take back the statuses that the stream has told", () => {
  const told = { agent_id: "bo", cause: "key", text: "The provider rejected the API key of Bo." } as Space["statuses"][number];
  const statuses: Action = { type: "space.statuses", space: SPACE, statuses: [told] };
  const list: Action = { type: "spaces", spaces: [space(1)] };
  assert.deepEqual(state(list, statuses, list).spaces[SPACE]?.info.statuses, [told]);
  assert.deepEqual(state(statuses, list).spaces[SPACE]?.info.statuses, [told]);
  // A stream that begins anew tells what there is: what was gone meanwhile is not kept.
  const again: Action = { type: "ready", spaces: [SPACE], read: {} };
  assert.deepEqual(state(list, statuses, again, list).spaces[SPACE]?.info.statuses, []);
});

test("only a new summary makes the client load the summary again", () => {
  const before = state({ type: "spaces", spaces: [space(1)] });
  const summary = { space_id: SPACE, summary_markdown: "They met." } as Extract<Action, { type: "metadata.update" }>["rolling_memory"];
  const told = { type: "metadata.update", space: SPACE, agent: null, prompt_profile: null, long_term_memory: null } as const;
  assert.equal(reduce(before, { ...told, rolling_memory: summary }).came[SPACE], 1);
  assert.equal(reduce(before, { ...told, agent: "bo", rolling_memory: null }).came[SPACE], undefined);
});

test("who types elsewhere is known until they wrote", () => {
  const typing = state({ type: "typing", space: SPACE, name: "Eve", account: "U1" });
  assert.deepEqual(typing.typing, { [SPACE]: { name: "Eve" } });
  const eve = { ...message(1), author: { id: "eve", kind: "human" as const, name: "Eve" } };
  assert.deepEqual(reduce(typing, { type: "message", message: { ...eve, author: { ...eve.author, name: "Mia" } } }).typing, typing.typing);
  assert.deepEqual(reduce(typing, { type: "message", message: eve }).typing, {});
});
