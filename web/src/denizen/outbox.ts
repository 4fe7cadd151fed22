/**
 * What was written and is not confirmed yet outlives the page. Each message has a place of its own in the browser, so
 * that several tabs do not overwrite each other; a tab that sends what another wrote does so under the same key, and
 * so not twice.
 */
import type { Store } from "./live";
import type { Pending } from "./store";

const prefixOf = (me: string): string => `outbox ${me} `;

/** What is kept, in the order in which it was written. */
export function kept(me: string): Pending[] {
  const prefix = prefixOf(me);
  const found: Pending[] = [];
  try {
    for (const name of Object.keys(localStorage)) if (name.startsWith(prefix)) found.push(JSON.parse(localStorage.getItem(name)!) as Pending);
  } catch {
    // Not allowed, or not ours: what could be read is sent.
  }
  found.sort((one, other) => (one.at < other.at ? -1 : Number(one.at > other.at)));
  // What the server had refused stays so; the rest is sent as soon as there is a connection.
  return found.map((each) => (each.state === "failed" ? each : { ...each, state: "waiting" }));
}

/** Take over what other tabs wrote and have not sent: they may be closed. */
export function adopt(store: Store, me: string): void {
  const known = new Set(store.getState().pending.map((each) => each.key));
  for (const pending of kept(me)) if (!known.has(pending.key)) store.dispatch({ type: "send", pending });
}

/** Keep what the store has not sent, until the returned function is called. */
export function keep(store: Store, me: string): () => void {
  const prefix = prefixOf(me);
  let last = store.getState().pending;
  const stop = store.subscribe(() => {
    const { pending } = store.getState();
    if (pending === last) return;
    const before = last;
    last = pending;
    try {
      for (const each of pending) if (!before.includes(each)) localStorage.setItem(prefix + each.key, JSON.stringify(each));
      const left = new Set(pending.map((each) => each.key));
      for (const each of before) if (!left.has(each.key)) localStorage.removeItem(prefix + each.key);
    } catch {
      // No room, or not allowed: then it lives as long as the page.
    }
  });
  // Another tab has sent it, or given it up.
  const elsewhere = ({ key, newValue }: StorageEvent): void => {
    if (newValue === null && key?.startsWith(prefix)) store.dispatch({ type: "dropped", key: key.slice(prefix.length) });
  };
  window.addEventListener("storage", elsewhere);
  return () => {
    stop();
    window.removeEventListener("storage", elsewhere);
  };
}
