import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message, Reply, Round } from "./api.ts";
import type { PanelDelta } from "./events.ts";
import { deltaTold, keyOf, messageTold, NO_PANEL, replyTold, roundsAnswered, roundsOf, roundTold } from "./panels.ts";

function reply(over: Partial<Reply>): Reply {
  return {
    advisor: "a", part: "reply", name: "Seth", state: "running", completed: false, content: "", thinking: null, error: null, phase: null,
    result: null, epoch: 1, model: null, input_tokens: 0, output_tokens: 0, cost_micros: null, started_at: null, ended_at: null, profile: null, memories: {}, ...over,
  };
}

function round(over: Partial<Round>): Round {
  return {
    type: "panel.round", id: "r", panel: "p", turn: 1, step: 0, kind: "ask", message_id: "m", message: null, asked_by: "noor", question: null,
    advisor_responses: { a: reply({}) }, all_completed: false, synthesis: null, checks: {}, tally: null, input_tokens: 0, output_tokens: 0,
    cost_micros: 0, created_at: "2026-01-05T09:00:00Z", completed_at: null, ...over,
  };
}

function delta(offset: number, text: string, over: Partial<PanelDelta> = {}): PanelDelta {
  return { type: "panel.delta", panel: "p", round: "r", advisor: "a", part: "reply", epoch: 1, offset, text, thinking: false, ...over };
}

const KEY = keyOf("r", "a", "reply");

test("pieces make up the text, told twice or with a hole they change nothing", () => {
  let panel = roundTold(NO_PANEL, round({}));
  panel = [delta(0, "Wé🍰"), delta(0, "Wé"), delta(9, "lost"), delta(2, "🍰ll"), delta(0, "Hm.", { thinking: true })].reduce(deltaTold, panel);
  assert.equal(panel.speaking[KEY]?.text, "Wé🍰ll");
  assert.equal(panel.speaking[KEY]?.thinking, "Hm.");
});

test("a new attempt begins anew, and an older one is not heard any more", () => {
  let panel = [delta(0, "first"), delta(0, "sec", { epoch: 2 }), delta(5, " more")].reduce(deltaTold, roundTold(NO_PANEL, round({})));
  assert.equal(panel.speaking[KEY]?.text, "sec");
  const done = reply({ state: "done", content: "second", epoch: 2 });
  panel = replyTold(panel, { type: "panel.reply", panel: "p", round: "r", all_completed: true, reply: done });
  assert.equal(panel.speaking[KEY], undefined);
  assert.equal(panel.rounds["r"]?.round.advisor_responses["a"]?.content, "second");
  assert.equal(panel.rounds["r"]?.round.all_completed, true);
});

test("an answer that was asked for before the stream spoke does not undo it", () => {
  const before = roundTold(NO_PANEL, round({}));
  const done = reply({ state: "done", content: "Yes." });
  const after = replyTold(before, { type: "panel.reply", panel: "p", round: "r", all_completed: true, reply: done });
  const late = roundsAnswered(after, [round({}), round({ id: "q", turn: 0 })], before.told);
  assert.equal(late.rounds["r"]?.round.advisor_responses["a"]?.state, "done");
  assert.deepEqual(roundsOf(late).map((each) => each.id), ["q", "r"]);
  const fresh = roundsAnswered(after, [round({ cost_micros: 7 })], after.told);
  assert.equal(fresh.rounds["r"]?.round.cost_micros, 7);
});

test("what is put together stands beside the replies, and an edited message in its round", () => {
  const message = { id: "m", text: "Old" } as Message;
  let panel = roundTold(NO_PANEL, round({ message }));
  const together = reply({ advisor: "synthesis", part: "synthesis", state: "done", content: "All agree." });
  panel = replyTold(panel, { type: "panel.reply", panel: "p", round: "r", all_completed: true, reply: together });
  panel = messageTold(panel, { ...message, text: "New" });
  assert.equal(panel.rounds["r"]?.round.synthesis?.content, "All agree.");
  assert.equal(panel.rounds["r"]?.round.message?.text, "New");
  assert.equal(messageTold(panel, { ...message, id: "x" }), panel);
});
