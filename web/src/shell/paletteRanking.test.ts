import assert from "node:assert/strict";
import { test } from "node:test";
import { type Entry, fit, grouped, ranked } from "./paletteRanking.ts";

const ENTRIES: Entry[] = [
  { id: "1", group: "Spaces", title: "Kitchen" },
  { id: "2", group: "Spaces", title: "Garden and kitchen plans" },
  { id: "3", group: "Agents", title: "Kit", hint: "@kit" },
  { id: "4", group: "People", title: "Zoë", hint: "@zoe" },
  { id: "5", group: "Actions", title: "Sign out", words: "log out,leave" },
];
const titles = (typed: string): string[] => ranked(typed, ENTRIES).map((each) => each.title);

test("the beginning of a name fits best", () => {
  assert.deepEqual(titles("kit"), ["Kit", "Kitchen", "Garden and kitchen plans"]);
  assert.deepEqual(titles("kitchen"), ["Kitchen", "Garden and kitchen plans"]);
});

test("accents, handles, other words and initials are found", () => {
  assert.deepEqual(titles("zoe"), ["Zoë"]);
  assert.deepEqual(titles("@zoe"), ["Zoë"]);
  assert.deepEqual(titles("log out"), ["Sign out"]);
  assert.deepEqual(titles("gakp"), ["Garden and kitchen plans"]);
  assert.deepEqual(titles("ktchn"), ["Kitchen", "Garden and kitchen plans"]);
});

test("what does not fit is not offered, and nothing typed offers all", () => {
  assert.deepEqual(titles("xyzzy"), []);
  assert.equal(titles("").length, ENTRIES.length);
  assert.equal(fit("kitchens", "kitchen"), 0);
  assert.deepEqual(grouped(ranked("kit", ENTRIES)).map(([name]) => name), ["Agents", "Spaces"]);
});
