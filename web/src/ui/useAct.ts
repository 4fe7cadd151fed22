import { useState } from "react";
import { inWords } from "../denizen/api";
import { useToast } from "./Toast";

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

/** The same; an error is told in a toast. */
export function useActWithToast(): Pick<Act, "busy" | "run"> {
  const toast = useToast();
  const { busy, run } = useAct();
  return {
    busy,
    run: (what) =>
      run(() =>
        what().catch((error: unknown) => {
          toast(inWords(error));
          throw error;
        }),
      ),
  };
}
