import { useEffect, useState } from "react";

const PAUSE_MILLISECONDS = 180;

/** What was typed, once one has paused: for what is asked of the server. */
export function usePaused(typed: string): string {
  const [paused, setPaused] = useState(typed);
  useEffect(() => {
    const timer = setTimeout(() => setPaused(typed), PAUSE_MILLISECONDS);
    return () => clearTimeout(timer);
  }, [typed]);
  return paused;
}
