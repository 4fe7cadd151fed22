import assert from "node:assert/strict";
import { test } from "node:test";
import { openStream, parseEvents } from "./stream.ts";

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("events are read whole, with their names, ids and lines of data", () => {
  const { events, rest } = parseEvents('retry: 1000\n\n: heartbeat\n\nevent: ready\nid: 4.9\ndata: {"a":1}\n\ndata: one\ndata:two\n\nevent: mess');
  assert.deepEqual(events, [
    { name: "ready", data: '{"a":1}', id: "4.9" },
    { name: "message", data: "one\ntwo", id: null },
  ]);
  assert.equal(rest, "event: mess");
});

test("an event may come in pieces, wherever it is cut", () => {
  const text = "event: message\nid: 1\ndata: a: b\n\nevent: message\nid: 2\ndata: c\n\n";
  for (let cut = 0; cut <= text.length; cut += 1) {
    const first = parseEvents(text.slice(0, cut));
    const second = parseEvents(first.rest + text.slice(cut));
    assert.deepEqual([...first.events, ...second.events].map(({ id, data }) => [id, data]), [["1", "a: b"], ["2", "c"]]);
    assert.equal(second.rest, "");
  }
});

test("a stream that falls silent is opened again after its last event, and one that speaks is not", async ({ mock }) => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const opened: { headers: Record<string, string>; say: (text: string) => void }[] = [];
  mock.method(globalThis, "fetch", async (_: string, { headers, signal }: { headers: Record<string, string>; signal: AbortSignal }) => {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        opened.push({ headers, say: (text) => controller.enqueue(new TextEncoder().encode(text)) });
        signal.addEventListener("abort", () => controller.error(signal.reason));
      },
    });
    return new Response(body);
  });
  const told: string[] = [];
  const close = openStream("/api/stream", { onEvent: ({ name }) => told.push(name), onLost: (refused) => told.push(refused ? "refused" : "lost") }, { headers: () => ({}) });
  await settled();
  opened[0]!.say("event: message\nid: 7\ndata: {}\n\n");
  await settled();
  mock.timers.tick(44_000);
  opened[0]!.say(": heartbeat\n\n");
  await settled();
  mock.timers.tick(44_000);
  await settled();
  assert.deepEqual(told, ["message"]);
  mock.timers.tick(1_000);
  await settled();
  assert.deepEqual(told, ["message", "lost"]);
  mock.timers.tick(0);
  await settled();
  assert.deepEqual(opened.map(({ headers }) => headers["Last-Event-ID"]), [undefined, "7"]);
  close();
  mock.timers.tick(100_000);
  await settled();
  assert.deepEqual([told, opened.length], [["message", "lost"], 2]);
});
