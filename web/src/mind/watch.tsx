/** The stream of the agent whose mind is looked into. It is open while the page is looked at, and closed behind it. */
import { createContext, useContext, useEffect, useReducer, useState } from "react";
import type { Schemas } from "../denizen/api";
import { openStream } from "../denizen/stream";
import { LIFE_EVENTS, type LifeEvent, UNSEEN, watch, type Watched } from "./watching";

export type AgentDetail = Schemas["AgentDetail"];

const AGAIN_MILLISECONDS = 3_000;

interface Looked {
  agent: AgentDetail;
  watched: Watched;
}

export const MindContext = createContext<Looked | null>(null);

/** The agent that is looked into, and what its stream has told. */
export function useMind(): Looked {
  const looked = useContext(MindContext);
  if (looked === null) throw new Error("useMind is for the screens of a mind.");
  return looked;
}

/** What the agent's stream tells, from the cycle after `since` on: also what ended before the stream was open. */
export function useWatching(agent: string, since: number): Watched {
  const [watched, tell] = useReducer(watch, UNSEEN);
  const [first] = useState(since);
  useEffect(() => {
    let end: () => void = () => undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let before = false;

    const close = (): void => {
      clearTimeout(timer);
      end();
    };
    const open = (): void => {
      close();
      // Later on everything is asked for anew, and what was missed need not be told one by one.
      end = openStream(`/api/agents/${encodeURIComponent(agent)}/stream${before ? "" : `?after=${first}`}`, {
        onOpen: () => {
          if (before) tell({ type: "again" });
          before = true;
        },
        onEvent: ({ name, data }) => {
          if ((LIFE_EVENTS as readonly string[]).includes(name)) tell({ ...JSON.parse(data), type: name } as LifeEvent);
        },
        onLost: (refused) => {
          if (refused) timer = setTimeout(open, AGAIN_MILLISECONDS);
        },
      });
    };
    // Browsers allow a server few connections: a page that nobody looks at needs none.
    const looked = (): void => (document.hidden ? close() : open());

    looked();
    document.addEventListener("visibilitychange", looked);
    return () => {
      document.removeEventListener("visibilitychange", looked);
      close();
    };
  }, [agent, first]);
  return watched;
}
