/** The presets of an organization while they are edited: a presets file, changed part by part. Pure. */

export interface Preset {
  id: string;
  label?: string;
  description?: string;
  addonPromptKeys?: string[];
}

export interface Rule {
  id?: string;
  presetId: string;
  priority?: number;
  modes?: string[];
  anyKeywords?: string[];
  allKeywords?: string[];
  minMessageChars?: number;
  maxMessageChars?: number | null;
}

export interface Routing {
  reviewEveryNTurns?: number;
  forceReviewOnCompaction?: boolean;
  defaultPresetId?: string | null;
  defaultPresetByMode?: Record<string, string>;
}

/** A presets file. Parts that are not listed here are kept as they are. */
export interface PresetFile {
  presets: Preset[];
  rules?: Rule[];
  routing?: Routing;
  addonPrompts?: Record<string, string>;
  memoryCompaction?: { defaultProfile?: string; profiles?: Record<string, unknown> };
}

export const DEFAULT_REVIEW_TURNS = 6;

export const plainKey = (key: string): string => key.replace(/^_meta\//, "").replace(/\.md$/, "");

export const nameOf = (preset: Preset): string => preset.label || preset.id;

/** The keys of the add-ons of a preset; a preset without any gets one of its own name. */
export function addonKeys(preset: Preset): string[] {
  const keys = (preset.addonPromptKeys ?? []).map(plainKey);
  return keys.length > 0 ? keys : [preset.id];
}

/** The text of an add-on: that of the file, otherwise that of the server. */
export function addonText(file: PresetFile, addons: Record<string, string>, key: string): string {
  const own = Object.entries(file.addonPrompts ?? {}).find(([each]) => plainKey(each) === key);
  return own?.[1] ?? addons[key] ?? "";
}

/** What a preset adds to the instructions of an agent. */
export function presetText(file: PresetFile, addons: Record<string, string>, preset: Preset): string {
  return (preset.addonPromptKeys ?? []).map((key) => addonText(file, addons, plainKey(key)).trim()).filter(Boolean).join("\n\n");
}

/** The other presets that use this add-on. */
export function alsoUsedBy(file: PresetFile, preset: Preset, key: string): Preset[] {
  return file.presets.filter((each) => each.id !== preset.id && (each.addonPromptKeys ?? []).some((other) => plainKey(other) === key));
}

/** The file with this preset, and the texts of its add-ons by key. A text that is the server's is not repeated. */
export function withPreset(file: PresetFile, addons: Record<string, string>, preset: Preset, texts: Record<string, string>): PresetFile {
  const keys = Object.keys(texts).filter((key) => texts[key]!.trim());
  const own = Object.fromEntries(Object.entries(file.addonPrompts ?? {}).map(([key, text]) => [plainKey(key), text]));
  for (const [key, text] of Object.entries(texts)) {
    if (text.trim() === "" || text.trim() === addons[key]) delete own[key];
    else own[key] = text.trim();
  }
  const made = { ...preset, addonPromptKeys: keys };
  const known = file.presets.some((each) => each.id === preset.id);
  return { ...file, presets: known ? file.presets.map((each) => (each.id === preset.id ? made : each)) : [...file.presets, made], addonPrompts: own };
}

/** The file without this preset, and without the rules and defaults that name it. */
export function withoutPreset(file: PresetFile, id: string): PresetFile {
  const { defaultPresetId, defaultPresetByMode, ...rest } = file.routing ?? {};
  const byMode = Object.entries(defaultPresetByMode ?? {}).filter(([, preset]) => preset !== id);
  return {
    ...file,
    presets: file.presets.filter((each) => each.id !== id),
    rules: (file.rules ?? []).filter((each) => each.presetId !== id),
    routing: { ...rest, ...(defaultPresetId && defaultPresetId !== id ? { defaultPresetId } : {}), defaultPresetByMode: Object.fromEntries(byMode) },
  };
}

/** The file with a rule changed, or with `at` null, added. */
export function withRule(file: PresetFile, at: number | null, rule: Rule): PresetFile {
  const rules = file.rules ?? [];
  return { ...file, rules: at === null ? [...rules, rule] : rules.map((each, index) => (index === at ? rule : each)) };
}

/** The rules in the order in which they are checked, each with its place in the file. */
export function rulesInOrder(file: PresetFile): { rule: Rule; at: number }[] {
  return (file.rules ?? []).map((rule, at) => ({ rule, at })).sort((one, other) => (other.rule.priority ?? 0) - (one.rule.priority ?? 0) || one.at - other.at);
}

/** When a rule applies, in words. */
export function conditionWords(rule: Rule): string {
  const quoted = (words: string[], joined: string): string => words.map((each) => `“${each}”`).join(joined);
  const found = [
    rule.anyKeywords?.length && `has ${quoted(rule.anyKeywords, " or ")}`,
    rule.allKeywords?.length && `has ${quoted(rule.allKeywords, " and ")}`,
    rule.minMessageChars && `has at least ${rule.minMessageChars.toLocaleString("en")} characters`,
    rule.maxMessageChars != null && `has at most ${rule.maxMessageChars.toLocaleString("en")} characters`,
  ].filter(Boolean);
  const modes = rule.modes?.length ? ` In the mode ${quoted(rule.modes, " or ")}.` : "";
  return (found.length > 0 ? `The message ${found.join(" and ")}.` : "Any message.") + modes;
}

/** Words that were typed one per line. */
export const wordsIn = (text: string): string[] => text.split("\n").map((each) => each.trim()).filter(Boolean);

/** An id made from a name: letters, digits and underscores. */
export const idFrom = (name: string): string => name.toLowerCase().normalize("NFKD").replace(/[\u0300-\u036f]/g, "").replace(/[^a-z0-9]+/g, "_").replace(/^_+|_+$/g, "");

/** A presets file as it was typed. Raises with what is wrong; the server checks the rest. */
export function fileFrom(text: string): PresetFile {
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch (error) {
    throw new Error(`This is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  const file = given as PresetFile;
  if (!given || typeof given !== "object" || !Array.isArray(file.presets)) throw new Error("A presets file has a list `presets`.");
  if (!file.presets.every((each) => each && typeof each.id === "string")) throw new Error("Each preset needs an `id`.");
  if (file.rules !== undefined && !(Array.isArray(file.rules) && file.rules.every((each) => each && typeof each.presetId === "string"))) throw new Error("`rules` is a list; each rule needs a `presetId`.");
  return file;
}
