import assert from "node:assert/strict";
import { test } from "node:test";
import type { Call, Message } from "../denizen/api.ts";
import type { SpaceState, State } from "../denizen/store.ts";
import { newsOf } from "./news.ts";

const NOOR = { id: "n", handle: "noor", name: "Noor", kind: "human" };
const SAM = { id: "s", handle: "sam", name: "Sam", kind: "human" };
const ADA = { id: "a", handle: "ada", name: "Ada", kind: "agent" };

function message(seq: number, author: typeof NOOR, text: string, more: Partial<Message> = {}): Message {
  return { id: `m${seq}`, space_id: "k", seq, author, text, plain: text, mentions: [], reply_to: null, deleted_at: null, ...more } as unknown as Message;
}

function state(...window: Message[]): State {
  const space = { info: { id: "k", name: "Kitchen", members: [NOOR, SAM, ADA] }, window } as unknown as SpaceState;
  return { me: NOOR, spaces: { k: space } } as unknown as State;
}

const titles = (now: State, told: Message): string | undefined => newsOf({ type: "message", message: told }, now)?.title;

test("mentions are news, and what an agent answers to oneself", () => {
  assert.equal(titles(state(), message(1, SAM, "@noor tea?", { mentions: ["noor"] })), "Sam in Kitchen");
  assert.equal(titles(state(message(1, NOOR, "Ada?")), message(2, ADA, "Yes.")), "Ada in Kitchen");
  assert.equal(titles(state(message(1, NOOR, "Ada?"), message(2, SAM, "Me too")), message(3, ADA, "Yes.", { reply_to: "m1" })), "Ada in Kitchen");
});

test("other talk is not, nor is what one says oneself", () => {
  assert.equal(titles(state(), message(1, SAM, "Tea?")), undefined);
  assert.equal(titles(state(message(1, SAM, "Ada?")), message(2, ADA, "Yes.")), undefined);
  assert.equal(titles(state(), message(1, NOOR, "@noor", { mentions: ["noor"] })), undefined);
});

test("a question can be answered from its notification only if all of it is there", () => {
  const call = { id: "c", agent_id: "a", space_id: "k", tool: "ask", state: "waiting", mode: "pause", approval: true, why: null } as unknown as Call;
  const asked = (args: unknown): unknown => newsOf({ type: "call", call: { ...call, arguments: args as Call["arguments"] } }, state());
  assert.deepEqual(asked({ to: "Bo" }), { tag: "c", title: "Ada asks for approval", body: 'ask\n{\n  "to": "Bo"\n}', path: "/s/k", call: "c" });
  assert.equal((asked({ text: "x".repeat(400) }) as { call?: string }).call, undefined);
  assert.equal(newsOf({ type: "call", call: { ...call, state: "answered" } }, state()), null);
});
