import assert from "node:assert/strict";
import { test } from "node:test";
import { parseEvents } from "./stream.ts";

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
