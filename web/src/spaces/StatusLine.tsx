import { useMutation } from "@tanstack/react-query";
import { Square } from "lucide-react";
import { type ReactNode, useEffect, useState } from "react";
import { inWords, post } from "../denizen/api";
import { useLive } from "../denizen/live";
import type { SpaceState } from "../denizen/store";
import css from "./conversation.module.css";
import { Button } from "../ui/Button";
import { useToast } from "../ui/Toast";
import { Dots } from "./MessageRow";
import { statusWords } from "./status";

const TYPING_MS = 10_000;

/** A quiet line of who thinks, with which tool, and who had nothing to say. It is always as high as one line. */
export function StatusLine({ space, onStop }: { space: SpaceState; onStop: () => void }): ReactNode {
  const presence = useLive((state) => state.presence);
  const writing = useLive((state) => state.writing);
  const { words, busy } = statusWords(space, presence, Object.values(writing), useTyping(space.info.id));
  return (
    <div className={css.status} role="status">
      <div className={css.statusText}>
        {busy && <Dots />}
        <span>{words}</span>
        {busy && <Stop space={space.info.id} onStop={onStop} />}
      </div>
    </div>
  );
}

/** Who types in a room elsewhere: shown for some seconds after it was told. */
function useTyping(space: string): string | undefined {
  const told = useLive((state) => state.typing[space]);
  const [over, setOver] = useState<typeof told>();
  useEffect(() => {
    const timer = window.setTimeout(() => setOver(told), TYPING_MS);
    return () => window.clearTimeout(timer);
  }, [told]);
  return told === over ? undefined : told?.name;
}

/** Ends what the agents write here: what they have said stays. */
function Stop({ space, onStop }: { space: string; onStop: () => void }): ReactNode {
  const stop = useStop(space);
  const end = (): void => {
    stop.mutate();
    // This button goes with what it stops.
    onStop();
  };
  return (
    <Button small variant="quiet" className={css.stop} icon={<Square size={12} />} busy={stop.isPending} title="Stop (Esc)" onClick={end}>
      Stop
    </Button>
  );
}

export function useStop(space: string): { isPending: boolean; mutate: () => void } {
  const toast = useToast();
  const stopping = useMutation({
    mutationFn: () => post("/api/spaces/{space_id}/stop", { path: { space_id: space }, body: {} }),
    onSuccess: ({ agents }) => {
      if (agents.length === 0) toast("No agent is writing here.");
    },
    onError: (error) => toast(inWords(error)),
  });
  return { isPending: stopping.isPending, mutate: () => stopping.mutate() };
}
