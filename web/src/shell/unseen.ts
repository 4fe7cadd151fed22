/** How much there is that was worth a notification, since somebody last looked. */
import { useSyncExternalStore } from "react";

const seen = new Set<string>();
const waiting = new Set<string>();
const listeners = new Set<() => void>();

function changed(): void {
  const badge = navigator as Navigator & { setAppBadge?: (count: number) => Promise<void>; clearAppBadge?: () => Promise<void> };
  void (waiting.size ? badge.setAppBadge?.(waiting.size) : badge.clearAppBadge?.())?.catch(() => undefined);
  for (const each of listeners) each();
}

/** Returns whether it is new. */
export function addUnseen(tag: string): boolean {
  if (seen.has(tag)) return false;
  seen.add(tag);
  waiting.add(tag);
  changed();
  return true;
}

export function clearUnseen(): void {
  if (waiting.size === 0) return;
  waiting.clear();
  changed();
}

export function useUnseen(): number {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => waiting.size,
  );
}
