import assert from "node:assert/strict";
import { test } from "node:test";
import { byCategory, held, itemsOf, type Memory, merged } from "./words.ts";

function memory(id: string, superseded_by: string | null = null, category = "facts"): Memory {
  return { id, superseded_by, category, text: id } as Memory;
}

test("what is outdated stands with what is true instead, over any number of steps", () => {
  const { held: found, gone } = held([memory("c"), memory("b", "c"), memory("a", "b"), memory("x", "elsewhere"), memory("y", "z"), memory("z", "y")]);
  assert.deepEqual(
    found.map((each) => [each.memory.id, each.earlier.map((old) => old.id)]),
    [["c", ["b", "a"]]],
  );
  assert.deepEqual(gone.map((each) => each.id), ["x", "y", "z"]);
});

test("categories come in their order, and those that nobody knows come last", () => {
  const { held: found } = held([memory("a", null, "todos"), memory("b", null, "own"), memory("c"), memory("d", null, "todos")]);
  assert.deepEqual(
    byCategory(found).map(([name, all]) => [name, all.length]),
    [
      ["facts", 1],
      ["todos", 2],
      ["own", 1],
    ],
  );
});

test("of what a conversation came to, what has another shape is left out", () => {
  const { groups, tags } = itemsOf({ todos: [{ text: "Buy rice.", sources: [3, "4"] }, "rice", null, { sources: [] }], facts: "none", tags: ["home", 7] });
  assert.deepEqual(groups, [["todos", [{ text: "Buy rice.", confidence: 1, sources: [3] }]]]);
  assert.deepEqual(tags, ["home"]);
});

test("many findings of one kind are one, and what contradicts itself comes first", () => {
  const finding = (problem: "junk" | "contradiction", ...memories: string[]) => ({ problem, scope: "user", memories, why: "so" });
  assert.deepEqual(merged([finding("junk", "a"), finding("contradiction", "a", "b"), finding("junk", "c"), finding("contradiction", "b", "c")]), [
    finding("contradiction", "a", "b"),
    finding("contradiction", "b", "c"),
    finding("junk", "a", "c"),
  ]);
});
