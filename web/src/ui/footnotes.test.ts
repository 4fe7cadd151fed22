import assert from "node:assert/strict";
import { test } from "node:test";
import { footnotes } from "./footnotes.ts";

test("notes are numbered as the text refers to them", () => {
  const { text, notes } = footnotes("Second[^b], first[^a].\n\n[^a]: About *a*\n[^b]: About b,\n  on two lines\n\nThe end");
  assert.equal(text, "Second[^b], first[^a].\n\n\nThe end");
  assert.deepEqual(notes, [
    { label: "b", text: "About b,\non two lines" },
    { label: "a", text: "About *a*" },
  ]);
});

test("a text without notes stays as it is, and so does code", () => {
  for (const text of ["[^1] is a regular expression", "```\n[^1]: code\n```\nand [^1]", "[^1]: nothing refers to it"]) {
    assert.deepEqual(footnotes(text), { text, notes: [] });
  }
});
