import assert from "node:assert/strict";
import { test } from "node:test";
import { type Command, nameOf, NOTHING, PATIENCE_MILLISECONDS, press } from "./shortcutKeys.ts";

function typed(keys: string[], { admin = true, pause = 100 } = {}): (Command | null)[] {
  let state = NOTHING;
  return keys.map((key, at) => {
    state = press(state, key, at * pause, admin);
    return state.command;
  });
}

test("two keys one after the other lead somewhere", () => {
  assert.deepEqual(typed(["g", "a"]), [null, "agents"]);
  assert.deepEqual(typed(["g", "x", "a"]), [null, null, null]);
  assert.deepEqual(typed(["g", "g", "s"]), [null, null, "home"]);
});

test("the second key comes soon, or means what it means alone", () => {
  assert.deepEqual(typed(["g", "s"], { pause: PATIENCE_MILLISECONDS + 1 }), [null, null]);
  assert.deepEqual(typed(["g", "j"]), [null, "next row"]);
});

test("what is for admins does nothing for others", () => {
  assert.deepEqual(typed(["g", "d"]), [null, "administration"]);
  assert.deepEqual(typed(["g", "d"], { admin: false }), [null, null]);
});

test("keys of the browser stay the browser's", () => {
  const bare = { ctrlKey: false, metaKey: false, altKey: false };
  assert.equal(nameOf({ ...bare, key: "K", metaKey: true }), "Mod+k");
  assert.equal(nameOf({ ...bare, key: "k", ctrlKey: true }), "Mod+k");
  assert.equal(nameOf({ ...bare, key: "r", ctrlKey: true }), null);
  assert.equal(nameOf({ ...bare, key: "Escape" }), null);
  assert.equal(nameOf({ ...bare, key: "ArrowDown", altKey: true }), "Alt+ArrowDown");
});
