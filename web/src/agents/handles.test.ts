import assert from "node:assert/strict";
import { test } from "node:test";
import { handleFault, handleFrom } from "./handles.ts";

test("a handle resembles its name, as the server makes it", () => {
  const told: [string, string][] = [
    ["Ada", "ada"],
    ["Dr. Noor Al-Amin", "dr-noor-al-amin"],
    ["  Research Assistant ", "research-assistant"],
    ["Zoë O'Brien", "zoe-obrien"],
    ["Straße 7", "strasse-7"],
    ["...", ""],
    ["研究員", ""],
    ["a".repeat(60), "a".repeat(40)],
  ];
  for (const [name, handle] of told) assert.equal(handleFrom(name), handle);
});

test("what is wrong with a handle is said", () => {
  assert.equal(handleFault("ada-2"), null);
  for (const wrong of ["", "a b", "-ada", "ada-", "é", "a".repeat(41)]) assert.notEqual(handleFault(wrong), null, wrong);
});
