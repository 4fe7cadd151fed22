import assert from "node:assert/strict";
import { test } from "node:test";
import { RESUMED, type ToTab } from "./sharedStream.ts";
import { SharedStream } from "./sharing.ts";
import type { ServerEvent, StreamHandlers, StreamOptions } from "./stream.ts";

interface Opened extends StreamHandlers {
  after: string | null | undefined;
  closed: boolean;
}

function shared(): { stream: SharedStream; opened: Opened[] } {
  const opened: Opened[] = [];
  const open = (_path: string, handlers: StreamHandlers, { after }: StreamOptions): (() => void) => {
    const connection: Opened = { ...handlers, after, closed: false };
    opened.push(connection);
    return () => (connection.closed = true);
  };
  return { stream: new SharedStream("/api/stream", {}, open), opened };
}

class FakeTab {
  told: string[] = [];
  postMessage(message: ToTab): void {
    if (message.type === "events") this.told.push(...message.events.map((each) => each.name));
    else this.told.push(message.type === "lost" ? `lost${message.refused ? ", refused" : ""}` : message.type);
  }
}

const event = (name: string, id: string | null = null): ServerEvent => ({ name, data: "{}", id });
const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));

test("tabs are told the same over one connection", async () => {
  const { stream, opened } = shared();
  const one = new FakeTab();
  const two = new FakeTab();
  stream.join(one);
  stream.join(two);
  assert.equal(opened.length, 1);
  opened[0]!.onEvent(event("ready", "a"));
  opened[0]!.onEvent(event("message", "b"));
  await settled();
  assert.deepEqual([one.told, two.told], [["ready", "message"], ["ready", "message"]]);
});

test("a new tab is told the present state, and the others miss nothing meanwhile", async () => {
  const { stream, opened } = shared();
  const old = new FakeTab();
  const late = new FakeTab();
  stream.join(old);
  opened[0]!.onEvent(event("ready", "a"));
  opened[0]!.onEvent(event("message", "b"));
  stream.join(late);
  assert.equal(opened[1]!.after, "b");
  opened[0]!.onEvent(event("message", "c")); // the old connection still counts
  opened[1]!.onEvent(event("ready", "b"));
  assert.ok(opened[0]!.closed);
  opened[0]!.onEvent(event("message", "c")); // too late
  opened[1]!.onEvent(event("message", "c"));
  await settled();
  assert.deepEqual(old.told, ["ready", "message", "message", RESUMED, "message"]);
  assert.deepEqual(late.told, ["ready", "message"]);
});

test("tabs that lost the connection are told all that is ready, not that it goes on", async () => {
  const { stream, opened } = shared();
  const old = new FakeTab();
  stream.join(old);
  opened[0]!.onEvent(event("ready", "a"));
  opened[0]!.onLost(false);
  stream.join(new FakeTab());
  opened[1]!.onEvent(event("ready", "a"));
  await settled();
  assert.deepEqual(old.told, ["ready", "lost", "ready"]);
});

test("a refused connection is over for its tabs, and the last tab closes what is open", async () => {
  const { stream, opened } = shared();
  const one = new FakeTab();
  stream.join(one);
  opened[0]!.onLost(true);
  assert.ok(stream.isEmpty);
  stream.join(one);
  opened[1]!.onEvent(event("ready", "a"));
  stream.leave(one);
  await settled();
  assert.ok(opened[1]!.closed && stream.isEmpty);
  assert.deepEqual(one.told, ["lost, refused", "ready"]);
});
