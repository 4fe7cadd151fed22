import { useRef } from "react";

/** Names a request: the same as long as the same is asked, so that asking again is asking once. */
export interface RequestKey {
  for: (asked: unknown) => string;
  /** It was answered: the next one is another, even if it asks the same. */
  renew: () => void;
}

export function useRequestKey(): RequestKey {
  const last = useRef<{ asked: string; key: string } | null>(null);
  return {
    for: (asked) => {
      const told = JSON.stringify(asked);
      if (last.current?.asked !== told) last.current = { asked: told, key: crypto.randomUUID() };
      return last.current.key;
    },
    renew: () => (last.current = null),
  };
}
