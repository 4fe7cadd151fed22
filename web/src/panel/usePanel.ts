/** What a screen of a panel asks for and does. */
import { useQuery, useQueryClient, type UseQueryResult } from "@tanstack/react-query";
import { createContext, useCallback, useContext, useEffect, useMemo, useRef, useState } from "react";
import { useSearch } from "wouter";
import { type Advisor, get, inWords, type Panel, type Round, type VoiceStance } from "../denizen/api";
import { type Store, useLive, useStore } from "../denizen/live";
import { NO_PANEL, roundsOf } from "../denizen/panels";
import { useVoices } from "../reflection/asking";
import { useToast } from "../ui/Toast";

/** The panel with its settings and advisors; asked for again whenever it becomes another. */
export function usePanel(id: string): UseQueryResult<Panel> {
  const client = useQueryClient();
  const changed = useLive((state) => state.panels[id]?.changed ?? 0);
  const begun = useLive((state) => state.begun);
  const first = useRef(true);
  useEffect(() => {
    if (!first.current) void client.invalidateQueries({ queryKey: ["panels", id] });
    first.current = false;
  }, [client, id, changed, begun]);
  return useQuery({ queryKey: ["panels", id], queryFn: ({ signal }) => get("/api/panels/{panel_id}", { path: { panel_id: id }, signal }) });
}

interface Rounds {
  rounds: Round[];
  loaded: boolean;
  error: unknown;
  reload: () => void;
  /** Reads what was before; null where there is nothing. */
  earlier: (() => Promise<void>) | null;
}

/** The rounds of a panel, live; the last turns first, and earlier ones when they are wanted. */
export function useRounds(id: string): Rounds {
  const store = useStore();
  const begun = useLive((state) => state.begun);
  const panel = useLive((state) => state.panels[id] ?? NO_PANEL);
  const [next, setNext] = useState<number | null>(null);
  const [read, setRead] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const rounds = useMemo(() => roundsOf(panel), [panel.rounds]);
  const load = useCallback(
    async (before?: number): Promise<void> => {
      const page = await answered(store, id, () => get("/api/panels/{panel_id}/rounds", { path: { panel_id: id }, query: { before } }), (told) => told.rounds);
      setNext((known) => (before === undefined && known !== null ? known : page.next));
    },
    [store, id],
  );
  const reload = useCallback(() => {
    setError(null);
    load()
      .then(() => setRead(true))
      .catch(setError);
  }, [load]);
  useEffect(reload, [reload, begun]);
  return { rounds, loaded: read, error, reload, earlier: next === null ? null : () => load(next) };
}

/** Ask, and have the store know the rounds of the answer, unless the stream has told newer ones meanwhile. */
export async function answered<T>(store: Store, panel: string, ask: () => Promise<T>, roundsIn: (answer: T) => Round[]): Promise<T> {
  const { begun, panels } = store.getState();
  const since = panels[panel]?.told ?? 0;
  const answer = await ask();
  store.dispatch({ type: "rounds", panel, rounds: roundsIn(answer), since, begun });
  return answer;
}

/** The number of the message that the address leads to, if it names one. */
export function useNamed(): string | null {
  return new URLSearchParams(useSearch()).get("m");
}

/** What the cards of a panel have in common. */
export interface Around {
  panel: Panel;
  advisors: ReadonlyMap<string, Advisor>;
  /** Handles to be marked in texts. */
  known: ReadonlyMap<string, string>;
  /** How those stand who are there; nobody before it is known. */
  minds: ReadonlyMap<string, VoiceStance>;
  /** Opens how one of them stands. */
  onMind: (voice: string) => void;
  /** Opens the form of an advisor, or its assertions. */
  onEdit: (advisor: Advisor, what: "advisor" | "assertions") => void;
  /** Does something to a round: what goes wrong is said. */
  act: (ask: () => Promise<Round>) => Promise<void>;
}

export const AroundContext = createContext<Around | null>(null);

export function useAround(): Around {
  const around = useContext(AroundContext);
  if (around === null) throw new Error("useAround is for what stands inside a panel.");
  return around;
}

export function useAroundOf(panel: Panel, onMind: Around["onMind"], onEdit: Around["onEdit"]): Around {
  const store = useStore();
  const say = useToast();
  const { data: voices } = useVoices(panel.id);
  return useMemo<Around>(
    () => ({
      panel,
      advisors: new Map(panel.advisors.map((each) => [each.id, each])),
      known: new Map(panel.advisors.map((each) => [each.handle, each.name])),
      minds: new Map(voices?.map((each) => [each.voice, each])),
      onMind,
      onEdit,
      act: async (ask) => {
        try {
          await answered(store, panel.id, ask, (round) => [round]);
        } catch (error) {
          say(inWords(error));
        }
      },
    }),
    [panel, voices, onMind, onEdit, store, say],
  );
}

/** A function that gives an element the colour of an advisor, to be used as `var(--advisor)`. */
export function coloured(colour: string | undefined): (element: HTMLElement | null) => void {
  return (element) => element?.style.setProperty("--advisor", colour || "var(--line-strong)");
}
