/** What the screens of a mind ask the server, each under the key by which it is asked again. */
import { type InfiniteData, useInfiniteQuery, useMutation, type UseMutationResult, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { get, type Schemas } from "../denizen/api";
import { type CyclePage, withNewest } from "./pages";

const PAGE = 50;
/** Of the entries of an open cycle; a longer one is shown from its last ones on. */
const MOST_ENTRIES = 200;

export function useMindOf(agent: string) {
  return useQuery({
    queryKey: ["agents", agent, "mind"],
    queryFn: ({ signal }) => get("/api/agents/{agent_id}/mind", { path: { agent_id: agent }, signal }),
  });
}

/** The entries of the cycle under way. */
export function useOpenEntries(agent: string, cycle: string | undefined) {
  return useQuery({
    queryKey: ["agents", agent, "now", cycle],
    enabled: cycle !== undefined,
    queryFn: async ({ signal }) => {
      const page = await get("/api/agents/{agent_id}/log", {
        path: { agent_id: agent },
        query: { before: Number.MAX_SAFE_INTEGER, limit: MOST_ENTRIES },
        signal,
      });
      return page.entries.filter((entry) => entry.cycle_id === cycle);
    },
  });
}

/** The agent's cycles, page by page, the newest first; what happens meanwhile, and changes `told`, comes to the front. */
export function useLife(agent: string, told: string) {
  const client = useQueryClient();
  const query = useInfiniteQuery({
    queryKey: ["life", agent],
    initialPageParam: null as number | null,
    queryFn: ({ pageParam, signal }) => cyclesBefore(agent, pageParam, signal),
    getNextPageParam: (last) => last.next,
    // What is read once stays as it is; what is new is told below.
    staleTime: Infinity,
  });
  const read = query.data !== undefined;
  useEffect(() => {
    if (!read) return;
    const abort = new AbortController();
    void cyclesBefore(agent, null, abort.signal)
      .then((fresh) => {
        client.setQueryData<InfiniteData<CyclePage, number | null>>(["life", agent], (known) => {
          if (known === undefined) return known;
          const pages = withNewest(known.pages, fresh);
          return { pages, pageParams: known.pageParams.slice(0, pages.length) };
        });
      })
      // The list stays as it is then, and is told of with what happens next.
      .catch(() => undefined);
    return () => abort.abort();
  }, [agent, client, told, read]);
  return query;
}

function cyclesBefore(agent: string, before: number | null, signal: AbortSignal): Promise<CyclePage> {
  return get("/api/agents/{agent_id}/cycles", { path: { agent_id: agent }, query: { before, limit: PAGE }, signal });
}

export function useCycle(agent: string, number: number) {
  return useQuery({
    queryKey: ["life", agent, "cycle", number],
    queryFn: ({ signal }) => get("/api/agents/{agent_id}/cycles/{number}", { path: { agent_id: agent, number }, signal }),
  });
}

/** One request, exactly. It is asked for when it is looked at: it may be long. */
export function useStep(agent: string, number: number, step: number, wanted: boolean) {
  return useQuery({
    queryKey: ["life", agent, "cycle", number, step],
    enabled: wanted,
    staleTime: Infinity,
    queryFn: ({ signal }) => get("/api/agents/{agent_id}/cycles/{number}/steps/{step}", { path: { agent_id: agent, number, step }, signal }),
  });
}

export function useModels() {
  return useQuery({ queryKey: ["models"], queryFn: ({ signal }) => get("/api/models", { signal }), staleTime: 60_000 });
}

export type InboxState = "pending" | "taken" | "dead";

export function useInbox(agent: string, state: InboxState) {
  return useInfiniteQuery({
    queryKey: ["agents", agent, "inbox", state],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) =>
      get("/api/agents/{agent_id}/inbox", { path: { agent_id: agent }, query: { state, after: pageParam, limit: PAGE }, signal }),
    getNextPageParam: (last: Schemas["InboxPage"]) => last.next ?? undefined,
  });
}

/** Something that changes the agent; afterwards everything about it is asked for again. */
export function useChange<Given = void>(agent: string, change: (given: Given) => Promise<unknown>): UseMutationResult<unknown, Error, Given> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSuccess: () => client.invalidateQueries({ queryKey: ["agents"], predicate: (query) => query.queryKey.length === 1 || query.queryKey[1] === agent || String(query.queryKey[1]).startsWith("@") }),
  });
}
