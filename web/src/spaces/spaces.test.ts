import assert from "node:assert/strict";
import { test } from "node:test";
import type { Member, Message } from "../denizen/api.ts";
import type { SpaceState } from "../denizen/store.ts";
import { formFields, question, readable } from "./calls.ts";
import { excerpt } from "./excerpt.ts";
import { lastSeen, messageRows, NEAR, nextPart, type Part, partBefore, type Row, rowsIn } from "./rows.ts";
import { invitation, names, statusWords } from "./status.ts";

function message(seq: number, at: string, author = "sam"): Message {
  const none = { reply_to: null, edited_at: null, deleted_at: null, outside: false };
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

test("a row that was drawn looks the same when earlier ones are known", () => {
  const all = Array.from({ length: 40 }, (_, index) => message(index + 1, new Date(Date.UTC(2026, 0, 5, index)).toISOString(), index % 5 ? "sam" : "noor"));
  const rowsOf = (window: Message[]): Row[] => messageRows(window, {}, null, (at) => Math.floor(Date.parse(at) / 86_400_000));
  const whole = rowsOf(all);
  assert.equal(whole.length, 40);
  for (const first of [2, 6, 17, 25]) assert.deepEqual(rowsOf(all.slice(first - 1)), whole.slice(first));
});

test("what is near the screen is drawn, what is far is not, and a reader who stays has nothing drawn anew", () => {
  const rows = messageRows(Array.from({ length: 600 }, (_, index) => message(index + 1, "2026-01-05T09:00:00Z")), {}, null, () => 0);
  const heights = rows.map((_, index) => 24 + ((index * 7919) % 11) * (index % 97 === 0 ? 900 : 12));
  const top = (index: number): number => heights.slice(0, index).reduce((sum, each) => sum + each, 0);
  const screen = 700;
  let part: Part = partBefore(600);
  // From the end to the beginning and back, in strides; each time until nothing more is to be drawn.
  const end = top(600) - screen;
  const strides = Array.from({ length: Math.ceil(end / 500) }, (_, index) => Math.max(end - index * 500, 0));
  for (const at of [...strides, 0, ...strides.reverse()]) {
    for (let rounds = 0; ; rounds += 1) {
      assert.ok(rounds < 20);
      const drawn = rowsIn(rows, part);
      const first = rows.indexOf(drawn[0]!);
      const spans = drawn.map((_, index) => ({ top: top(first + index) - at, bottom: top(first + index + 1) - at }));
      assert.ok(spans[0]!.top <= 0 && spans.at(-1)!.bottom >= screen, `a hole at ${at}`);
      const next = nextPart(part, rows, drawn, spans, screen);
      if (next === part) {
        assert.ok(-spans[0]!.top >= NEAR || first === 0);
        assert.ok(spans.at(-1)!.bottom - screen >= NEAR || part.to === Infinity);
        assert.ok(drawn.length < 350, `${drawn.length} rows at ${at}`);
        const whole = spans.filter((span) => span.bottom < screen + 4).length;
        assert.equal(lastSeen(drawn, spans, screen), whole > 0 ? first + whole : null);
        break;
      }
      part = next;
    }
  }
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

test("one line says who thinks, writes, uses something or did not reply", () => {
  const member = (id: string): Member => ({ id, kind: "agent", handle: id, name: id.toUpperCase(), role: "member", attention: "all", trouble: null, namesake: false });
  const space = { info: { id: "s", last_seq: 4, members: ["a", "b", "c"].map(member), statuses: [] }, passed: { c: 4, b: 3 }, window: [message(4, "2026-01-05T09:00:00Z")] } as unknown as SpaceState;
  const alive = (doing: string | null) => ({ status: "alive" as const, doing, epoch: 1 });
  const writing = { id: "m", agent: "a", space: "s", replyTo: null, text: "", length: 0 };
  assert.deepEqual(statusWords(space, {}, []), { words: "C read this and did not reply", busy: false });
  assert.deepEqual(statusWords(space, { a: alive(null), b: alive("search"), c: alive(null) }, [writing]), {
    words: "A is writing · B is using search · C is thinking",
    busy: true,
  });
  assert.deepEqual(statusWords(space, {}, [], "Eve"), { words: "Eve is typing", busy: false });
  assert.equal(names([{ name: "A" }, { name: "B" }, { name: "C" }, { name: "D" }]), "A, B and 2 others");
});

test("whoever speaks first is told who hears it, and how one of them is addressed", () => {
  const member = (name: string, attention: Member["attention"] = "all"): Member => ({ id: name, kind: "agent", handle: name.toLowerCase(), name, role: "member", attention, trouble: null, namesake: false });
  assert.match(invitation([]), /^Say hello: everyone in this space sees it\./);
  assert.equal(invitation([member("Ada")]), "Say hello: Ada hears it.");
  assert.equal(invitation([member("Ada"), member("Bo")]), "Say hello: Ada and Bo hear it. Use @ada to address one of them.");
  assert.equal(invitation([member("Ada", "none"), member("Bo", "mentions"), member("Cleo")]), "Say hello: Cleo hears it. Use @bo to address one of them.");
  assert.equal(invitation([member("Ada", "mentions")]), "Say hello. Use @ada to address Ada.");
  assert.equal(invitation([member("Ada", "none")]), "Say hello.");
});

test("the form of a server has a field for each value", () => {
  const fields = formFields({
    required: ["size"],
    properties: {
      size: { type: "string", oneOf: [{ const: "s", title: "Small" }], title: "Size" },
      colour: { enum: ["red"], enumNames: ["Red"] },
      sure: { type: "boolean", default: true },
      count: { type: "integer" },
      note: { type: "string", description: "Anything else." },
    },
  });
  assert.deepEqual(fields.map((each) => [each.label, each.kind, each.required, each.initial]), [
    ["Size", "choice", true, ""],
    ["colour", "choice", false, ""],
    ["sure", "boolean", false, true],
    ["count", "number", false, ""],
    ["note", "text", false, ""],
  ]);
  assert.deepEqual(fields[0]?.choices, [{ value: "s", label: "Small" }]);
  assert.deepEqual(fields[1]?.choices, [{ value: "red", label: "Red" }]);
  assert.deepEqual(formFields(undefined), []);
});

test("arguments of a call are shown with the characters that nobody sees", () => {
  assert.equal(readable({ to: "bo\u202e@x.example" }), '{\n  "to": "bo\\u{202e}@x.example"\n}');
  assert.equal(readable("a\u200bb\u{e0041}c\u00add\ufe0fe"), "a\\u{200b}b\\u{e0041}c\\u{ad}d\\u{fe0f}e");
  assert.equal(readable({ to: "Zoë, 東京" }), '{\n  "to": "Zoë, 東京"\n}');
});
