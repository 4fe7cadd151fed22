import assert from "node:assert/strict";
import { test } from "node:test";
import { isDirectSpace } from "./direct.ts";

const noor = { id: "1", name: "Noor" };
const bo = { id: "2", name: "Bo" };
const sam = { id: "3", name: "Sam" };

test("a private space that is named after its two members is a conversation of two", () => {
  assert.ok(isDirectSpace({ name: "Noor and Bo", private: true, members: [noor, bo] }, "1"));
  assert.ok(isDirectSpace({ name: "Bo and Noor", private: true, members: [noor, bo] }, "1"));
});

test("a private space with a name of its own keeps it", () => {
  assert.ok(!isDirectSpace({ name: "Taxes", private: true, members: [noor, bo] }, "1"));
  assert.ok(!isDirectSpace({ name: "Noor and Bo: taxes", private: true, members: [noor, bo] }, "1"));
});

test("an open space, one of three, and one of others are none", () => {
  assert.ok(!isDirectSpace({ name: "Noor and Bo", private: false, members: [noor, bo] }, "1"));
  assert.ok(!isDirectSpace({ name: "Noor and Bo", private: true, members: [noor, bo, sam] }, "1"));
  assert.ok(!isDirectSpace({ name: "Noor and Bo", private: true, members: [noor, bo] }, "3"));
});
