import assert from "node:assert/strict";
import { test } from "node:test";
import { differences, moments, ownMetaprompts, type Run, settingsOf, type Signal, stretches, whyWords } from "./timeline.ts";

function run(number: number, at: string, mood: string): Run {
  return { number, at, state: { mood, user_skill: "unknown", task_complexity: "unknown" } } as Run;
}

test("a signal stands before what it brought about, and both in the order of time", () => {
  const seen = { number: 9, at: "2026-01-05T09:00:00Z" } as Signal;
  const all = moments([run(2, "2026-01-05T10:00:00Z", "curious"), run(1, "2026-01-05T09:00:00Z", "patient")], [seen]);
  assert.deepEqual(all.map((each) => ("run" in each ? each.run.number : each.signal.number)), [9, 1, 2]);
  assert.deepEqual(stretches(all, "mood", "neutral"), [
    { value: "neutral", from: 0, to: 1 },
    { value: "patient", from: 1, to: 2 },
    { value: "curious", from: 2, to: 3 },
  ]);
  assert.deepEqual(stretches(all, "user_skill", "unknown"), [{ value: "unknown", from: 0, to: 3 }]);
});

test("only what is different is told", () => {
  const before = { mood: "neutral", user_skill: "novice", task_complexity: "simple" } as const;
  assert.deepEqual(differences(before, { ...before, mood: "patient" }), [{ side: "mood", before: "neutral", after: "patient" }]);
});

test("why it is so is what was said of it, or what brought it about", () => {
  assert.equal(whyWords(null), "");
  assert.equal(whyWords({ outcome: "changed", reason: "They are cross.", cause: "user_frustrated" }), "They are cross.");
  assert.equal(whyWords({ outcome: "changed", reason: "", cause: "set" }), "set by hand");
  assert.equal(whyWords({ outcome: "unchanged", reason: "", cause: "interval" }), "");
  assert.equal(whyWords({ outcome: "failed", reason: "It took too long.", cause: "interval" }), "");
});

test("who has metaprompts of its own can be asked them", () => {
  assert.deepEqual(ownMetaprompts({ profile: "off", metaprompts: [{ id: "by hand" }] }), ["by hand"]);
  for (const nothing of [undefined, null, {}, { metaprompts: [] }]) assert.deepEqual(ownMetaprompts(nothing), []);
});

test("settings that are not shown stay as they are", () => {
  const before = { preset: "short", reflection: { profile: "basic", model: "small" } };
  assert.deepEqual(settingsOf(before, "", " ", ""), { reflection: { model: "small" } });
  assert.deepEqual(settingsOf(before, "plain", "ada", "off"), { preset: "plain", mode: "ada", reflection: { model: "small", profile: "off" } });
  assert.deepEqual(settingsOf({}, "", "", ""), {});
});
