import assert from "node:assert/strict";
import { test } from "node:test";
import type { Member, Message } from "../denizen/api.ts";
import type { SpaceState } from "../denizen/store.ts";
import { question } from "./calls.ts";
import { excerpt } from "./excerpt.ts";
import { candidates, completed, mentionAt } from "./mentions.ts";
import { messageRows } from "./rows.ts";
import { names, statusWords } from "./status.ts";

function message(seq: number, at: string, author = "sam"): Message {
  const none = { reply_to: null, edited_at: null, deleted_at: null };
  return { id: `m${seq}`, space_id: "s", seq, author: { id: author, kind: "human", name: author }, text: "", plain: "", mentions: [], metadata: {}, created_at: at, ...none };
}

test("messages of one author that follow each other belong together, but for a new day, the unread line and time", () => {
  const window = [
    message(1, "2026-01-05T23:58:00Z"),
    message(2, "2026-01-05T23:59:00Z"),
    message(3, "2026-01-06T00:01:00Z"),
    message(4, "2026-01-06T00:02:00Z"),
    message(5, "2026-01-06T00:09:00Z"),
    message(6, "2026-01-06T00:10:00Z", "noor"),
  ];
  const rows = messageRows(window, {}, 3, (at) => Math.floor(Date.parse(at) / 86_400_000));
  const seen = rows.map((row) => row.kind === "message" && [row.newDay, row.firstUnread, row.continued]);
  assert.deepEqual(seen, [
    [true, false, false],
    [false, false, true],
    [true, false, false],
    [false, true, false],
    [false, false, false],
    [false, false, false],
  ]);
});

test("a mention is completed where the caret stands", () => {
  const people = [
    { id: "1", handle: "bo", name: "Bo", kind: "agent" },
    { id: "2", handle: "ada", name: "Ada", kind: "agent" },
    { id: "3", handle: "zoe", name: "Zoe Adams", kind: "human" },
  ];
  const wanted = mentionAt("Hi @ad and more", 6);
  assert.deepEqual(wanted, { start: 3, typed: "ad" });
  assert.deepEqual(candidates(people, "ad").map((each) => each.handle), ["ada", "zoe"]);
  assert.deepEqual(completed("Hi @ad and more", wanted!, "ada"), { text: "Hi @ada and more", caret: 8 });
  assert.equal(mentionAt("mail@ad", 7), null);
  assert.equal(mentionAt("no mention", 10), null);
  assert.equal(candidates(people, "").length, 3);
});

test("a question is what the arguments say it with", () => {
  assert.equal(question({ question: "Deploy?", id: 4 }), "Deploy?");
  assert.equal(question({ what: "Deploy v2", count: 2 }), "Deploy v2");
  assert.match(question({ a: 1, b: 2 }), /^```json/);
});

test("what was looked for is marked, in a piece of the text around it", () => {
  assert.deepEqual(excerpt("The kettle leaks", "KETTLE (x"), [
    { text: "The ", hit: false },
    { text: "kettle", hit: true },
    { text: " leaks", hit: false },
  ]);
  const long = excerpt(`${"a ".repeat(400)}kettle ${"b ".repeat(400)}`, "kettle");
  assert.ok(long.map((part) => part.text).join("").length < 300);
  assert.ok(long.some((part) => part.hit));
});

test("one line says who thinks, writes, uses something or had nothing to say", () => {
  const member = (id: string): Member => ({ id, kind: "agent", handle: id, name: id.toUpperCase(), role: "member", attention: "all" });
  const space = { info: { id: "s", last_seq: 4, members: ["a", "b", "c"].map(member) }, passed: { c: 4, b: 3 }, window: [message(4, "2026-01-05T09:00:00Z")] } as unknown as SpaceState;
  const alive = (doing: string | null) => ({ status: "alive" as const, doing, epoch: 1 });
  const writing = { id: "m", agent: "a", space: "s", replyTo: null, text: "", length: 0 };
  assert.deepEqual(statusWords(space, {}, []), { words: "C read this and had nothing to say", busy: false });
  assert.deepEqual(statusWords(space, { a: alive(null), b: alive("search"), c: alive(null) }, [writing]), {
    words: "A is writing · B is using search · C is thinking",
    busy: true,
  });
  assert.equal(names([{ name: "A" }, { name: "B" }, { name: "C" }, { name: "D" }]), "A, B and 2 others");
});
