/** Completing `@han…` while it is typed. Pure. */

export interface Candidate {
  id: string;
  handle: string;
  name: string;
}

export interface Wanted {
  /** Where the `@` stands. */
  start: number;
  /** What was typed behind it. */
  typed: string;
}

const BEFORE_CARET = /(?:^|[\s([{"'“‘,;:!?–—-])@([\p{L}\p{N}_-]{0,64})$/u;

/** The mention that the caret stands in, if any. */
export function mentionAt(text: string, caret: number): Wanted | null {
  const found = BEFORE_CARET.exec(text.slice(Math.max(0, caret - 80), caret));
  if (!found) return null;
  const typed = found[1]!;
  return { start: caret - typed.length - 1, typed };
}

const SHOWN = 6;

/** Those whose handle or name begins with what was typed; then those in whose name it stands. */
export function candidates<C extends Candidate>(all: readonly C[], typed: string): C[] {
  const wanted = typed.toLocaleLowerCase();
  const rank = (each: C): number => {
    const handle = each.handle.toLocaleLowerCase();
    const name = each.name.toLocaleLowerCase();
    if (handle.startsWith(wanted) || name.startsWith(wanted)) return 0;
    return handle.includes(wanted) || name.includes(wanted) ? 1 : 2;
  };
  return all
    .map((each) => [rank(each), each] as const)
    .filter(([place]) => place < 2)
    .sort((a, b) => a[0] - b[0] || a[1].handle.localeCompare(b[1].handle))
    .slice(0, SHOWN)
    .map(([, each]) => each);
}

/** The text with the mention in place of what was typed, and where the caret is then. */
export function completed(text: string, wanted: Wanted, handle: string): { text: string; caret: number } {
  const end = wanted.start + 1 + wanted.typed.length;
  const before = `${text.slice(0, wanted.start)}@${handle} `;
  return { text: before + text.slice(end).replace(/^ /, ""), caret: before.length };
}
