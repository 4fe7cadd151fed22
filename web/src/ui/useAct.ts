import { useState } from "react";

export interface Act {
  busy: boolean;
  error: unknown;
  /** Whether it went well. */
  run: (what: () => Promise<unknown>) => Promise<boolean>;
  clear: () => void;
}

/** Something that is done once at a time, and may fail. */
export function useAct(): Act {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const run = async (what: () => Promise<unknown>): Promise<boolean> => {
    setBusy(true);
    setError(null);
    try {
      await what();
      return true;
    } catch (problem) {
      setError(problem);
      return false;
    } finally {
      setBusy(false);
    }
  };
  return { busy, error, run, clear: () => setError(null) };
}
