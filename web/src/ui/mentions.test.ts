import assert from "node:assert/strict";
import { test } from "node:test";
import { candidates, completed, mentionAt } from "./mentions.ts";

test("a mention is completed where the caret stands", () => {
  const people = [
    { id: "1", handle: "bo", name: "Bo" },
    { id: "2", handle: "ada", name: "Ada" },
    { id: "3", handle: "zoe", name: "Zoe Adams" },
  ];
  const wanted = mentionAt("Hi @ad and more", 6);
  assert.deepEqual(wanted, { start: 3, typed: "ad" });
  assert.deepEqual(candidates(people, "ad").map((each) => each.handle), ["ada", "zoe"]);
  assert.deepEqual(completed("Hi @ad and more", wanted!, "ada"), { text: "Hi @ada and more", caret: 8 });
  assert.equal(mentionAt("mail@ad", 7), null);
  assert.equal(mentionAt("no mention", 10), null);
  assert.equal(candidates(people, "").length, 3);
});
