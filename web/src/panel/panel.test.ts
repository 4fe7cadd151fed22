import assert from "node:assert/strict";
import { test } from "node:test";
import type { Reply, Round } from "../denizen/api.ts";
import { alsoSetWords, dissentWords, distanceWords, lastWords, moved, phaseDrafts, phaseFault, phasesOf, phaseWords, progressWords, roundTitle, stateWords, turnsOf } from "./words.ts";

function round(over: Partial<Round>, states: Reply["state"][] = []): Round {
  const advisor_responses = Object.fromEntries(states.map((state, index) => [String(index), { state } as Reply]));
  return { kind: "ask", turn: 1, step: 0, question: null, advisor_responses, ...over } as Round;
}

test("states and phases are told in plain words", () => {
  assert.equal(stateWords("running", false), "thinking");
  assert.equal(stateWords("cancelled", false), "was stopped");
  assert.equal(phaseWords({ name: "question", turn: 2, of: 3 }), "question 2 of 3");
  assert.equal(phaseWords({ name: "", turn: 4, of: null }), "");
  assert.equal(progressWords(round({}, ["done", "failed", "running", "cancelled"])), "1 of 4 has answered, 1 failed, 1 stopped");
  assert.equal(progressWords(round({ kind: "vote" }, ["done", "done"])), "All 2 have voted");
});

test("rounds stand under their turns, with what they are", () => {
  const ask = round({});
  const first = round({ kind: "crosstalk", step: 1 });
  const second = round({ kind: "crosstalk", step: 2 });
  const next = round({ turn: 2 });
  assert.deepEqual(turnsOf([ask, first, second, next]), [[ask, first, second], [next]]);
  assert.equal(roundTitle(second, [ask, first, second]), "Cross-talk (2)");
  assert.equal(roundTitle(round({ kind: "vote", question: "Sign?" }), []), "Vote: Sign?");
});

test("a vote says who stands farthest apart", () => {
  const camp = { position: "yes", advisors: ["a"], confidence: 1, weight: 1 };
  const dissent = { a: { a: 0, b: 0.2, c: 0.9 }, b: { a: 0.2, b: 0, c: 0.5 }, c: { a: 0.9, b: 0.5, c: 0 } };
  assert.equal(dissentWords({ leading: "yes", camps: [camp, camp], dissent }, (id) => id.toUpperCase()), "Most different: A and C.");
  assert.equal(dissentWords({ leading: "yes", camps: [camp], dissent }, String), "All agree.");
  assert.deepEqual([0, 0.2, 0.5, 0.9].map(distanceWords), ["together", "near", "apart", "very different"]);
});

test("what last became of a state of mind is told in a line", () => {
  const last = { outcome: "changed", reason: "They are cross.", cause: "user_frustrated" } as Parameters<typeof lastWords>[0]["last"];
  assert.equal(lastWords({ last, reflects: false }), "They are cross.");
  assert.equal(lastWords({ last: null, reflects: true }), "No changes yet.");
  assert.equal(lastWords({ last: null, reflects: false }), "Reflection is off.");
  assert.equal(lastWords({ last: { ...last!, outcome: "failed" }, reflects: true }), "Reflection failed.");
  assert.equal(lastWords({ last: { ...last!, outcome: "unchanged", reason: "" }, reflects: true }), "Reflected, no change.");
});

test("what a form does not show of reflection is told", () => {
  assert.equal(alsoSetWords(null), "");
  assert.equal(alsoSetWords({ profile: "basic", model: "small", metaprompts: [] }), "");
  const own = { profile: "basic", sentiment: {}, metaprompts: [{}] } as Parameters<typeof alsoSetWords>[0];
  assert.equal(alsoSetWords(own), "Other settings, unchanged: sentiment, instead of the profile's; metaprompts.");
});

test("advisors are moved", () => {
  assert.deepEqual(moved(["a", "b", "c"], 2, -1), ["a", "c", "b"]);
  assert.deepEqual(moved(["a", "b"], 1, 1), ["a", "b"]);
});

test("phases are edited and checked", () => {
  const phases = [
    { name: "question", until_turn: 3, instructions: "Ask." },
    { name: "", until_turn: null, instructions: "Answer." },
  ];
  const drafts = phaseDrafts(phases);
  assert.deepEqual(phasesOf(drafts), phases);
  assert.equal(phaseFault(drafts), null);
  assert.equal(phaseFault([]), null);
  const [first, second] = [drafts[0]!, drafts[1]!];
  assert.deepEqual(phaseFault([{ ...first, until: "" }, second]), { at: 0, field: "until", text: "Only the last phase can have no end." });
  assert.equal(phaseFault([first, { ...second, until: "2" }])?.at, 1);
  assert.equal(phaseFault([{ ...first, until: "1.5" }, second])?.text, "Use a whole number from 1.");
  assert.equal(phaseFault([first, { ...second, instructions: " " }])?.field, "instructions");
});
