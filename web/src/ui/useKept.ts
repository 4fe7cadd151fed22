import { useState } from "react";
import { useMe } from "../denizen/hooks";

/** What was filled in and not saved, by whom and where. It outlives its screen, not the page. */
const kept = new Map<string, unknown>();

/** Like `useState`, for a field of a long form: it is still filled in after a look at another screen. */
export function useKept<T>(form: string, field: string, initial: T): [T, (next: T) => void] {
  const name = `${useMe().id} ${form} ${field}`;
  const [value, setValue] = useState<T>(() => (kept.has(name) ? (kept.get(name) as T) : initial));
  const set = (next: T): void => {
    kept.set(name, next);
    setValue(next);
  };
  return [value, set];
}

/** A function that is called when a form was sent, or given up. */
export function useForget(form: string): () => void {
  const prefix = `${useMe().id} ${form} `;
  return () => {
    for (const name of [...kept.keys()]) if (name.startsWith(prefix)) kept.delete(name);
  };
}
