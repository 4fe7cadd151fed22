import assert from "node:assert/strict";
import { test } from "node:test";
import { split } from "./fences.ts";

test("prose and code are parted, whatever the fences are made of", () => {
  const text = "Look:\n\n```Python title=x\ndef f():\n    pass\n```\nand\n~~~~\n```\n~~~~\nend";
  assert.deepEqual(split(text), [
    { text: "Look:\n" },
    { text: "", code: "def f():\n    pass", language: "python" },
    { text: "and" },
    { text: "", code: "```", language: undefined },
    { text: "end" },
  ]);
});

test("a fence that is never closed goes to the end, and nothing at all is one empty part", () => {
  assert.deepEqual(split("```\nstill writing"), [{ text: "", code: "still writing", language: undefined }]);
  assert.deepEqual(split(""), [{ text: "" }]);
  assert.equal(split("``` not a fence ``` at all").length, 1);
});

test("ten thousand broken fences take no time", () => {
  assert.ok(split("```\n~~~\n`".repeat(10_000)).length > 0);
});
