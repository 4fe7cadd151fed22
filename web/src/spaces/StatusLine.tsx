import type { ReactNode } from "react";
import { useLive } from "../denizen/live";
import type { SpaceState } from "../denizen/store";
import css from "./conversation.module.css";
import { Dots } from "./MessageRow";
import { statusWords } from "./status";

/** A quiet line of who thinks, with which tool, and who had nothing to say. It is always as high as one line. */
export function StatusLine({ space }: { space: SpaceState }): ReactNode {
  const presence = useLive((state) => state.presence);
  const writing = useLive((state) => state.writing);
  const { words, busy } = statusWords(space, presence, Object.values(writing));
  return (
    <div className={css.status} role="status">
      <div className={css.statusText}>
        {busy && <Dots />}
        <span>{words}</span>
      </div>
    </div>
  );
}
