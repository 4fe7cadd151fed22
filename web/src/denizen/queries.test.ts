import assert from "node:assert/strict";
import { test } from "node:test";
import { QueryObserver } from "@tanstack/react-query";
import { openQueries } from "./queries.ts";

/** Answers that are given when the test says so. */
function asked(): { ask: () => Promise<string>; answers: ((text: string) => void)[] } {
  const answers: ((text: string) => void)[] = [];
  return { ask: () => new Promise((answer) => answers.push(answer)), answers };
}

test("what becomes another while it is asked for the first time is asked for again", async () => {
  const client = openQueries();
  const { ask, answers } = asked();
  const observer = new QueryObserver(client, { queryKey: ["mind"], queryFn: ask });
  const leave = observer.subscribe(() => undefined);
  const again = client.invalidateQueries({ queryKey: ["mind"] });
  answers[0]!("before");
  await new Promise(setImmediate);
  assert.equal(answers.length, 2);
  answers[1]!("after");
  await again;
  assert.equal(observer.getCurrentResult().data, "after");
  leave();
  client.clear();
});

test("what is known anew is told before whoever waited for it goes on", async () => {
  const client = openQueries();
  const { ask, answers } = asked();
  const told: unknown[] = [];
  const observer = new QueryObserver(client, { queryKey: ["mind"], queryFn: ask, initialData: "before" });
  const leave = observer.subscribe(({ data }) => told.push(data));
  const again = client.invalidateQueries({ queryKey: ["mind"] });
  answers.at(-1)!("after");
  await again;
  assert.equal(told.at(-1), "after");
  leave();
  client.clear();
});
