/** What the screens of memory ask the server. */
import { useInfiniteQuery, useMutation, useQuery, useQueryClient, type UseInfiniteQueryResult } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { get, patch, post, remove, type Schemas } from "../denizen/api";
import { useLive } from "../denizen/live";
import type { Memory } from "./words";

type Page = Schemas["MemoryPage"];
const PAGE = 100;

/** Whose memories are looked at, and which. */
export type Wanted =
  | { of: "you" | "everyone"; q: string }
  | { of: "between"; agent: string; q: string }
  | { of: "agent"; agent: string }
  | { of: "space"; space: string };

/** What is remembered, the newest first; with words, what fits them best. */
export function useMemories(wanted: Wanted, enabled = true): UseInfiniteQueryResult<Memory[]> {
  return useInfiniteQuery({
    queryKey: ["memory", wanted],
    enabled,
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) => page(wanted, pageParam, signal),
    getNextPageParam: (last) => last.next ?? undefined,
    select: (read) => read.pages.flatMap((each) => each.memories),
  });
}

function page(wanted: Wanted, before: string | undefined, signal: AbortSignal): Promise<Page> {
  const query = { before, limit: PAGE };
  switch (wanted.of) {
    case "agent":
      return get("/api/agents/{agent_id}/memories", { path: { agent_id: wanted.agent }, query, signal });
    case "space":
      return get("/api/spaces/{space_id}/memories", { path: { space_id: wanted.space }, query, signal });
    default: {
      const scope = ({ you: "user", between: "persona", everyone: "organization" } as const)[wanted.of];
      const agent = wanted.of === "between" ? wanted.agent : undefined;
      return get("/api/memory", { query: { ...query, scope, agent, q: wanted.q || undefined }, signal });
    }
  }
}

/** What the organization has switched off. */
export function useSwitches() {
  return useQuery({ queryKey: ["organization", "memory"], queryFn: ({ signal }) => get("/api/organization/memory", { signal }), staleTime: 30_000 });
}

/** The versions of a memory, the oldest first. */
export function useMemoryHistory(id: string) {
  return useQuery({ queryKey: ["memory", "history", id], queryFn: ({ signal }) => get("/api/memory/{memory_id}/history", { path: { memory_id: id }, signal }) });
}

/** Correcting, reverting and forgetting; afterwards what is remembered is asked for again. */
export function useMemoryChange() {
  const client = useQueryClient();
  const after = (): Promise<void> => client.invalidateQueries({ queryKey: ["memory"] });
  return {
    correct: useMutation({
      mutationFn: ({ id, text }: { id: string; text: string }) => patch("/api/memory/{memory_id}", { path: { memory_id: id }, body: { text } }),
      onSuccess: after,
    }),
    revert: useMutation({
      mutationFn: ({ id, version }: { id: string; version: string }) => post("/api/memory/{memory_id}/revert", { path: { memory_id: id }, body: { version } }),
      onSuccess: after,
    }),
    forget: useMutation({
      mutationFn: (id: string) => remove("/api/memory/{memory_id}", { path: { memory_id: id } }),
      onSuccess: after,
    }),
  };
}

/** What a conversation came to. It is read again whenever the stream tells that it is another, or was broken. */
export function useCame(space: string) {
  const client = useQueryClient();
  const told = useLive((state) => state.came[space] ?? 0);
  const begun = useLive((state) => state.begun);
  const query = useQuery({
    queryKey: ["memory", "came", space],
    // It may have become another while nobody looked.
    refetchOnMount: "always",
    queryFn: ({ signal }) => get("/api/spaces/{space_id}/memory", { path: { space_id: space }, signal }),
  });
  const first = useRef(true);
  useEffect(() => {
    if (first.current) {
      first.current = false;
      return;
    }
    void client.invalidateQueries({ queryKey: ["memory", "came", space] });
    void client.invalidateQueries({ queryKey: ["memory", { of: "space", space }] });
  }, [client, space, told, begun]);
  return query;
}

/** What shall be otherwise. */
export type Settled = Partial<Schemas["PolicyChange"]>;

/** Settles it, and then knows what holds. */
export function useSettle(space: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: Settled) => patch("/api/spaces/{space_id}/memory", { path: { space_id: space }, body: { scopes: {}, ...body } }),
    onSettled: () => client.invalidateQueries({ queryKey: ["memory", "came", space] }),
  });
}
