/** What the screens of a mind are made of. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { dollars, percent } from "../ui/amounts.ts";
import { placed, read, SECTIONS, valuesOf } from "./fields.ts";
import { byDay, withNewest } from "./pages.ts";
import { partsOf, readable, sideBySide, stepsOf } from "./transcript.ts";
import { UNSEEN, watch, type LifeEvent } from "./watching.ts";
import { company, duration, stopped, tokens } from "./words.ts";

const OPENED: LifeEvent = { type: "cycle.opened", agent: "a", cycle: "c1", state: "open", started_at: "2026-01-05T09:00:00Z", events: 1, attempts: 0 };
const step = (number: number, cycle = "c1"): LifeEvent => ({ type: "step", agent: "a", cycle, step: number, model: "demo", tools: ["send_message"], input_tokens: 100, output_tokens: 10 });

test("a cycle is followed step by step until it ends", () => {
  const events: LifeEvent[] = [
    { type: "agent.status", agent: "a", status: "alive", epoch: 1, doing: null },
    OPENED,
    { type: "stream.started", id: "m1", agent: "a", space: "s", epoch: 1, reply_to: null, offset: 0 },
    { type: "stream.delta", id: "m1", agent: "a", epoch: 1, offset: 0, text: "Good " },
    { type: "stream.delta", id: "m1", agent: "a", epoch: 1, offset: 5, text: "morning." },
  ];
  const writing = events.reduce(watch, UNSEEN);
  assert.equal(writing.writing?.text, "Good morning.");

  const acting = [step(0), { type: "tool", cycle: "c1", step: 0, position: 0, tool: "send_message", state: "done" } as LifeEvent].reduce(watch, writing);
  assert.equal(acting.writing, null);
  assert.deepEqual([acting.open?.steps, acting.open?.inputTokens, acting.open?.calls], [1, 100, { "0.0": "done" }]);

  const used = { steps: 1, input_tokens: 100, output_tokens: 10, cost_micros: 0, stop_reason: "done" };
  const times = { started_at: "2026-01-05T09:00:00Z", ended_at: "2026-01-05T09:00:01Z" };
  const ended = watch(acting, { type: "cycle", agent: "a", cycle: "c1", number: 7, outcome: "acted", summary: "Greeted Noor.", ...used, ...times });
  assert.deepEqual([ended.open, ended.ended?.number, ended.endings], [null, 7, 1]);
});

test("whoever is told the same again, or of another cycle, knows no more than before", () => {
  const known = [OPENED, step(0)].reduce(watch, UNSEEN);
  assert.deepEqual([OPENED, step(0), step(3, "another")].reduce(watch, known).open, known.open);
});

test("a failure that will be tried again leaves the cycle open, and says what went wrong", () => {
  const failed = [OPENED, { type: "cycle.failed", cycle: "c1", undone: false, error: "overloaded" } as LifeEvent].reduce(watch, UNSEEN);
  assert.equal(failed.open?.error, "overloaded");
  assert.equal(watch(failed, { type: "cycle.failed", agent: "a", cycle: "c1", undone: true, error: "no" }).open, null);
});

test("that it stands otherwise to a conversation is known, also after the stream had broken", () => {
  const state = { mood: "neutral", user_skill: "unknown", task_complexity: "unknown" } as const;
  const stance = { space_id: "s", profile: { id: null, reason: "" }, state, imprints: {}, turns: 1, settings: {}, updated_at: null };
  const told: LifeEvent[] = [{ type: "agent.stance", agent: "a", stance }, { type: "again" }];
  assert.equal(told.reduce(watch, UNSEEN).stances, 2);
});

const entry = (kind: string, message: unknown) => ({ seq: 1, cycle: null, cycle_id: "c1", kind, at: "", tokens: 1, message }) as never;

test("entries of the log become steps, with each result beside its call", () => {
  const { steps, rest } = stepsOf([
    entry("inbox", { parts: [{ part_kind: "user-prompt", content: "[INBOX]" }] }),
    entry("response", {
      usage: { input_tokens: 5, output_tokens: 2 },
      parts: [
        { part_kind: "thinking", content: "Hm." },
        { part_kind: "tool-call", tool_name: "a", args: '{"x": 1}' },
        { part_kind: "tool-call", tool_name: "b", args: "{broken" },
      ],
    }),
    entry("results", { parts: [{ part_kind: "tool-return", tool_name: "a", content: "one" }] }),
    entry("update", { parts: [{ part_kind: "user-prompt", content: "Stop!" }] }),
  ]);
  assert.deepEqual(steps[0]?.calls, [
    { tool: "a", arguments: { x: 1 }, result: "one" },
    { tool: "b", arguments: "{broken", result: null },
  ]);
  assert.deepEqual([steps[0]?.thinking, steps[0]?.usage?.input_tokens], ["Hm.", 5]);
  assert.deepEqual(rest, [{ kind: "update", text: "Stop!" }]);
});

test("what is not known is shown as it is kept", () => {
  assert.equal(partsOf({ parts: [{ part_kind: "hologram" }] })[0]?.role, "other");
  assert.equal(partsOf("text")[0]?.role, "other");
  assert.deepEqual(readable("{not json"), { text: "{not json", json: false });
});

test("two answers stand side by side, line by line", () => {
  assert.deepEqual(sideBySide(["--- a", "+++ b", "@@ -1,2 +1,3 @@", " same", "-old", "+new", "+more"]), [
    { left: "same", right: "same", same: true },
    { left: "old", right: "new", same: false },
    { left: null, right: "more", same: false },
  ]);
});

const cycle = (number: number | null, outcome = "acted", at = `2026-01-05T09:0${number ?? 0}:00Z`) =>
  ({ id: `c${number}`, number, outcome, kept: number !== null, ended_at: outcome === "open" ? null : at, started_at: at }) as never;
const page = (cycles: never[], next: number | null = null) => ({ cycles, next, complete: true }) as never;

test("a life that goes on while it is read has no gaps and no doubles", () => {
  const before = [page([cycle(3), cycle(2)], 2), page([cycle(1)])];
  const after = withNewest(before, page([cycle(4), cycle(3)], 3));
  assert.deepEqual(after.flatMap((each) => each.cycles.map((one) => one.number)), [4, 3, 2, 1]);
  assert.equal(after[0]?.next, 2);
  assert.deepEqual(withNewest(before, page([cycle(9), cycle(8)], 8)).length, 1);
  const days = byDay([page([cycle(3, "acted", "2026-01-06T01:00:00Z"), cycle(3, "acted", "2026-01-06T01:00:00Z"), cycle(2)])], (at) => Number(at.slice(8, 10)));
  assert.deepEqual(days.map((day) => [day.day, day.cycles.length]), [[6, 1], [5, 1]]);
});

test("only what was changed is sent, and what was emptied is reset", () => {
  const before = valuesOf("Ada", { instructions: "Be brief.", cycle: { max_steps: 5, stop_when: ["responded_to_all"] }, budget: { dollars: "2" } });
  assert.equal(before["cycle.awareness"], "combined");
  const now = { ...before, "cycle.max_steps": "", "cycle.stop_when": '["responded_to_all", {"after": "book"}]', "cycle.step_models": "big, small", "window.max_tokens": "20 000", "private_guard.enabled": false };
  assert.deepEqual(read(before, now), {
    errors: {},
    changes: { cycle: { max_steps: null, stop_when: ["responded_to_all", { after: "book" }], step_models: ["big", "small"] }, window: { max_tokens: 20000 }, private_guard: { enabled: false } },
  });
  assert.deepEqual(read(before, before), { changes: {}, errors: {} });
});

test("what cannot be read is said beside its field", () => {
  const before = valuesOf("Ada", {});
  const { errors } = read(before, { ...before, name: " ", "cycle.max_steps": "many", "cycle.token_budget": "3", tools: "{", heartbeat: true });
  assert.deepEqual(Object.keys(errors).sort(), ["cycle.max_steps", "cycle.token_budget", "heartbeat.every_minutes", "name", "tools"]);
});

test("a heartbeat is switched on whole and off whole", () => {
  const off = valuesOf("Ada", {});
  const on = { ...off, heartbeat: true, "heartbeat.every_minutes": "30" };
  assert.deepEqual(read(off, on).changes, { heartbeat: { every_minutes: 30, weekdays: ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"] } });
  assert.deepEqual(read(on, { ...on, heartbeat: false }).changes, { heartbeat: null });
});

test("the server's words stand beside the fields they are about", () => {
  assert.deepEqual(placed({ detail: "", errors: [{ field: "tools.0.url", message: "missing" }, { field: "cycle.max_steps", message: "too small" }, { field: "colour", message: "unknown" }] }), {
    errors: { tools: "0.url: missing", "cycle.max_steps": "Too small" },
    rest: "colour: unknown",
  });
  assert.deepEqual(placed({ detail: "tools: this server has no tool 'x'.", errors: [] }).errors, { tools: "This server has no tool 'x'." });
  assert.equal(placed({ detail: "You may not.", errors: [] }).rest, "You may not.");
});

test("no field appears twice", () => {
  const paths = SECTIONS.flatMap((section) => section.fields.map((field) => field.path));
  assert.equal(new Set(paths).size, paths.length);
});

test("numbers are told in words", () => {
  assert.equal(duration("2026-01-05T09:00:00Z", "2026-01-05T09:03:20Z"), "3 min 20 s");
  assert.equal(duration("2026-01-05T09:00:00Z", "2026-01-05T09:00:00.400Z"), "0.4 s");
  assert.equal(dollars(0.0271), "$0.027");
  assert.deepEqual([percent(null), percent(0.004), percent(0.75)], ["–", "< 1%", "75%"]);
  assert.equal(tokens({ input_tokens: 200, output_tokens: 5, cache_read_tokens: 150 }), "200 read (75% cached), 5 written");
  assert.equal(company({ people: ["Noor", "Sam"], spaces: ["Kitchen"] }), "Noor and Sam in Kitchen");
  assert.match(stopped("my_condition"), /my_condition/);
});
