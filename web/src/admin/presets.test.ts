import assert from "node:assert/strict";
import { test } from "node:test";
import { addonKeys, alsoUsedBy, conditionWords, fileFrom, idFrom, presetText, rulesInOrder, withoutPreset, withPreset, withRule, wordsIn, type PresetFile } from "./presets.ts";

const ADDONS = { concise: "Be brief.", tutor: "Teach." };
const FILE: PresetFile = {
  presets: [{ id: "plain" }, { id: "short", addonPromptKeys: ["_meta/concise"] }, { id: "tutor", addonPromptKeys: ["tutor", "concise.md"] }],
  rules: [
    { presetId: "short", anyKeywords: ["briefly", "in short"] },
    { presetId: "tutor", priority: 5, minMessageChars: 1500, modes: ["ada"] },
  ],
  routing: { defaultPresetId: "short", defaultPresetByMode: { ada: "short", bo: "plain" } },
};

test("a preset is changed together with its texts", () => {
  assert.equal(presetText(FILE, ADDONS, FILE.presets[2]!), "Teach.\n\nBe brief.");
  assert.deepEqual(addonKeys({ id: "plain" }), ["plain"]);
  const changed = withPreset(FILE, ADDONS, { id: "short", label: "Short" }, { concise: "Be very brief. " });
  assert.deepEqual(changed.presets[1], { id: "short", label: "Short", addonPromptKeys: ["concise"] });
  assert.deepEqual(changed.addonPrompts, { concise: "Be very brief." });
  assert.equal(presetText(changed, ADDONS, changed.presets[2]!), "Teach.\n\nBe very brief.");
  assert.deepEqual(alsoUsedBy(FILE, FILE.presets[1]!, "concise").map((each) => each.id), ["tutor"]);
  assert.deepEqual(withPreset(changed, ADDONS, { id: "short" }, { concise: "Be brief." }).addonPrompts, {});
  assert.deepEqual(withPreset(FILE, ADDONS, { id: "new" }, { new: " " }).presets.at(-1), { id: "new", addonPromptKeys: [] });
});

test("what names a preset goes with it", () => {
  const without = withoutPreset(FILE, "short");
  assert.deepEqual(without.presets.map((each) => each.id), ["plain", "tutor"]);
  assert.deepEqual(without.rules?.map((each) => each.presetId), ["tutor"]);
  assert.deepEqual(without.routing, { defaultPresetByMode: { bo: "plain" } });
});

test("rules are told in the order in which they are checked", () => {
  assert.deepEqual(rulesInOrder(FILE).map((each) => each.at), [1, 0]);
  assert.equal(conditionWords(FILE.rules![0]!), "The message has “briefly” or “in short”.");
  assert.equal(conditionWords(FILE.rules![1]!), "The message has at least 1,500 characters. In the mode “ada”.");
  assert.equal(conditionWords({ presetId: "x" }), "Any message.");
  assert.equal(withRule(FILE, null, { presetId: "plain" }).rules!.length, 3);
  assert.equal(withRule(FILE, 0, { presetId: "plain" }).rules![0]!.presetId, "plain");
  assert.deepEqual(wordsIn(" plan \n\nsteps to"), ["plan", "steps to"]);
  assert.equal(idFrom("Très formel!"), "tres_formel");
});

test("a file is read as it was typed", () => {
  assert.deepEqual(fileFrom(JSON.stringify(FILE)), FILE);
  assert.throws(() => fileFrom("{"), /not JSON/);
  assert.throws(() => fileFrom("[]"), /list `presets`/);
  assert.throws(() => fileFrom('{"presets": [{}]}'), /needs an `id`/);
  assert.throws(() => fileFrom('{"presets": [], "rules": {}}'), /`rules` is a list/);
});
