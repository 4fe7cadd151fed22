import assert from "node:assert/strict";
import { test } from "node:test";
import { isOdd } from "./odd.ts";

test("what people write is not odd", () => {
  const letter = "Some **bold** words, `code`, a [link](https://example.com) and _more_.\n".repeat(20);
  for (const text of ["", "Hello", `${letter}\n`.repeat(20), "- a\n  - b\n    - c\n", "> > quoted twice", "1. one\n2. two", "---\n***"]) {
    assert.equal(isOdd(text), false, text.slice(0, 40));
  }
});

test("what would take a parser seconds is", () => {
  for (const text of ["a".repeat(9_000), "> ".repeat(300), "- ".repeat(300), "1. ".repeat(300), "**".repeat(900), "[".repeat(900), "~~`\n".repeat(900)]) {
    assert.equal(isOdd(text), true, text.slice(0, 40));
  }
});
