import { startTransition, useOptimistic } from "react";

/** What the server has told; and, from the moment something else is asked of it until that is settled, what was asked. */
export function useAhead<T>(told: T): [T, (wanted: T, settled: Promise<unknown>) => void] {
  const [shown, show] = useOptimistic(told);
  const ahead = (wanted: T, settled: Promise<unknown>): void =>
    startTransition(async () => {
      show(wanted);
      // That it was refused is for whoever asked to say.
      await settled.catch(() => undefined);
    });
  return [shown, ahead];
}
