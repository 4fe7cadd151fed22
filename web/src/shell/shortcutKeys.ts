/** Keys and what they do. Pure: `press(state, key)` says what a key means after those before it. */

export type Command =
  | "palette"
  | "help"
  | "search"
  | "home"
  | "agents"
  | "administration"
  | "usage"
  | "me"
  | "new agent"
  | "new space"
  | "next row"
  | "previous row"
  | "next space"
  | "previous space";

export interface Shortcut {
  /** One key, or two one after the other. */
  keys: string[];
  command: Command;
  label: string;
  group: "Everywhere" | "Go to" | "Make" | "In lists";
  /** Only for admins. */
  admin?: boolean;
}

export const SHORTCUTS: Shortcut[] = [
  { keys: ["Mod+k"], command: "palette", label: "Find anything", group: "Everywhere" },
  { keys: ["/"], command: "search", label: "Search messages", group: "Everywhere" },
  { keys: ["?"], command: "help", label: "Show shortcuts", group: "Everywhere" },
  { keys: ["g", "s"], command: "home", label: "Last space", group: "Go to" },
  { keys: ["Alt+ArrowDown"], command: "next space", label: "Next space", group: "Go to" },
  { keys: ["Alt+ArrowUp"], command: "previous space", label: "Previous space", group: "Go to" },
  { keys: ["g", "a"], command: "agents", label: "Agents", group: "Go to" },
  { keys: ["g", "d"], command: "administration", label: "Administration", group: "Go to", admin: true },
  { keys: ["g", "u"], command: "usage", label: "Usage", group: "Go to", admin: true },
  { keys: ["g", "m"], command: "me", label: "You", group: "Go to" },
  { keys: ["n", "a"], command: "new agent", label: "New agent", group: "Make", admin: true },
  { keys: ["n", "s"], command: "new space", label: "New space", group: "Make" },
  { keys: ["j"], command: "next row", label: "Next row", group: "In lists" },
  { keys: ["k"], command: "previous row", label: "Previous row", group: "In lists" },
];

/** How long a first key waits for its second. */
export const PATIENCE_MILLISECONDS = 1_200;

export interface Pressed {
  /** The first key of a pair that may come. */
  waiting: { key: string; at: number } | null;
  command: Command | null;
}

export const NOTHING: Pressed = { waiting: null, command: null };

/** What `key` means, if it was pressed at this moment after `before`. */
export function press(before: Pressed, key: string, at: number, admin: boolean): Pressed {
  const known = SHORTCUTS.filter((each) => admin || !each.admin);
  const first = before.waiting !== null && at - before.waiting.at <= PATIENCE_MILLISECONDS ? before.waiting.key : null;
  const pair = first === null ? undefined : known.find((each) => each.keys[0] === first && each.keys[1] === key);
  if (pair) return { waiting: null, command: pair.command };
  const alone = known.find((each) => each.keys.length === 1 && each.keys[0] === key);
  if (alone) return { waiting: null, command: alone.command };
  return { waiting: known.some((each) => each.keys.length === 2 && each.keys[0] === key) ? { key, at } : null, command: null };
}

interface KeyLike {
  key: string;
  ctrlKey: boolean;
  metaKey: boolean;
  altKey: boolean;
}

/** A key as it is named above; null for those with which the browser or the system does something itself. */
export function nameOf(event: KeyLike): string | null {
  if (event.ctrlKey || event.metaKey) return event.key.toLowerCase() === "k" && !event.altKey ? "Mod+k" : null;
  if (event.altKey) return event.key.startsWith("Arrow") ? `Alt+${event.key}` : null;
  return event.key.length === 1 ? event.key.toLowerCase() : null;
}

const SHOWN: Record<string, string> = { "Mod+k": "Ctrl K", "Alt+ArrowDown": "Alt ↓", "Alt+ArrowUp": "Alt ↑" };

/** The keys as they are written on a keyboard. */
export function shown(key: string, mac: boolean): string {
  const text = SHOWN[key] ?? key;
  return mac ? text.replace("Ctrl", "⌘").replace("Alt", "⌥") : text;
}
