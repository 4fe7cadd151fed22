import assert from "node:assert/strict";
import { test } from "node:test";
import { namesakes } from "./namesakes.ts";

function space(id: string, name: string, created_at: string, ...members: string[]) {
  return { id, name, created_at, members: ["noor", ...members].map((each) => ({ id: each, name: each.replace(/\d/, "").toUpperCase(), handle: each })) };
}

const told = (...spaces: ReturnType<typeof space>[]) => [...namesakes(spaces, "noor").entries()];

test("a space with a name of its own needs no more words", () => {
  assert.deepEqual(told(space("1", "Kitchen", "2026-01-05T10:00:00Z", "ada"), space("2", "Garden", "2026-01-05T10:00:00Z", "ada")), []);
});

test("spaces of the same name are told apart by their other members", () => {
  const spaces = [space("1", "Kitchen", "2026-01-05T10:00:00Z", "ada"), space("2", "kitchen ", "2026-01-05T10:00:00Z"), space("3", "Kitchen", "2026-01-05T10:00:00Z", "a", "b", "c", "d", "e")];
  assert.deepEqual(told(...spaces), [
    ["1", "ADA"],
    ["2", "only you"],
    ["3", "A, B, C and 2 more"],
  ]);
});

test("members of the same name are told apart by their handles", () => {
  assert.deepEqual(told(space("1", "Kitchen", "2026-01-05T10:00:00Z", "sam"), space("2", "Kitchen", "2026-01-05T10:00:00Z", "sam2")), [
    ["1", "@sam"],
    ["2", "@sam2"],
  ]);
});

test("spaces with the same members are told apart by the day on which they were created, or the time of that day", () => {
  const days = told(space("1", "Kitchen", "2026-01-05T10:00:00Z", "ada"), space("2", "Kitchen", "2026-02-07T10:00:00Z", "ada"));
  assert.match(days[0]![1], /^created .*2026/);
  assert.notEqual(days[0]![1], days[1]![1]);
  const times = told(space("1", "Kitchen", "2026-01-05T10:00:00Z", "ada"), space("2", "Kitchen", "2026-01-05T10:00:30Z", "ada"));
  assert.match(times[0]![1], /:00:00/);
  assert.match(times[1]![1], /:00:30/);
});

test("spaces created in the same second are numbered in the order of their creation", () => {
  assert.deepEqual(told(space("2", "Kitchen", "2026-01-05T10:00:00Z"), space("1", "Kitchen", "2026-01-05T10:00:00Z")), [
    ["2", "2 of 2"],
    ["1", "1 of 2"],
  ]);
});
