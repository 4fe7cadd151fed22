import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { ApiError, get, inWords, post } from "./api.ts";

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** What the request came to, as it is now. */
function outcomeOf(asked: Promise<unknown>): { now: unknown } {
  const outcome: { now: unknown } = { now: "nothing yet" };
  asked.then(
    (answer) => (outcome.now = answer),
    (error: unknown) => (outcome.now = error),
  );
  return outcome;
}

/** A server that answers so, or never. */
function serverSays({ mock }: TestContext, answer: Response | null): void {
  mock.method(globalThis, "fetch", (_: string, { signal }: { signal?: AbortSignal }) =>
    answer ? Promise.resolve(answer) : new Promise((_resolve, reject) => signal?.addEventListener("abort", () => reject(signal.reason as Error))),
  );
}

test("what can be asked twice is not waited for for ever, other requests take the time that they need", async (context) => {
  serverSays(context, null);
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const path = { space_id: "s" };
  const read = outcomeOf(get("/api/me"));
  const said = outcomeOf(post("/api/spaces/{space_id}/messages", { path, body: { text: "Hello" } as never, key: "k" }));
  const stopped = outcomeOf(post("/api/spaces/{space_id}/stop", { path, body: {} }));
  context.mock.timers.tick(59_999);
  await settled();
  assert.deepEqual([read.now, said.now], ["nothing yet", "nothing yet"]);
  context.mock.timers.tick(1);
  await settled();
  for (const { now } of [read, said]) assert.ok(now instanceof ApiError && now.code === "offline" && now.passing);
  assert.equal(stopped.now, "nothing yet");
});

test("a request that its asker gives up ends as the asker wants", async (context) => {
  serverSays(context, null);
  const asker = new AbortController();
  const asked = outcomeOf(get("/api/me", { signal: asker.signal }));
  asker.abort();
  await settled();
  assert.equal((asked.now as Error).name, "AbortError");
});

test("an answer that breaks off, or that another program gives, is an error in words", async (context) => {
  for (const [answer, words, passing] of [
    [new Response('{"id": '), /cannot be reached/, true],
    [new Response("<html>Sign in to the Wi-Fi</html>"), /cannot be reached/, true],
    [Response.json({ error: "boom" }, { status: 502 }), /unexpected answer \(502\)/, true],
    [new Response("<html>Too large</html>", { status: 413 }), /too large/, false],
    [Response.json({ code: "forbidden", title: "Forbidden", detail: "Ask an owner.", status: 403 }, { status: 403 }), /^Ask an owner\.$/, false],
  ] as const) {
    serverSays(context, answer);
    const error: unknown = await get("/api/me").catch((problem: unknown) => problem);
    assert.ok(error instanceof ApiError);
    assert.match(inWords(error), words);
    assert.equal(error.passing, passing);
    context.mock.restoreAll();
  }
});
