/** What a component may ask for: who one is, spaces, agents. Live parts change by themselves. */
import { queryOptions, useQueries, useQuery, useQueryClient, type UseQueryResult } from "@tanstack/react-query";
import { useMemo } from "react";
import { type Agent, get, type Me, type Schemas } from "./api";
import { useLive } from "./live";
import { namesakes } from "./namesakes";
import { type Connection, inOrder, type Presence, type SpaceState } from "./store";

/** Who is signed in. For what stands inside <Live>. */
export function useMe(): Me {
  const me = useLive((state) => state.me);
  if (me === null) throw new Error("useMe is for what stands inside <Live>.");
  return me;
}

/** Whether the person may do what admins may. */
export function useIsAdmin(): boolean {
  return ["admin", "owner"].includes(useMe().role);
}

export function useConnection(): Connection {
  return useLive((state) => state.connection);
}

/** Why the server does not tell what there is, although it is connected; null if it does. */
export function useTrouble(): string | null {
  return useLive((state) => (state.connection === "open" ? state.trouble : null));
}

/** The spaces the person is in, by name; null before they were read. */
export function useSpaces(): SpaceState[] | null {
  const spaces = useLive((state) => state.spaces);
  const loaded = useLive((state) => state.loaded);
  return useMemo(() => (loaded ? inOrder(spaces) : null), [spaces, loaded]);
}

/** What tells those of the same name apart, by their ids. */
export function useNamesakes(): ReadonlyMap<string, string> {
  const me = useMe();
  const spaces = useLive((state) => state.spaces);
  return useMemo(() => namesakes(Object.values(spaces).map((each) => each.info), me.id), [spaces, me.id]);
}

/** One of them; undefined if the person is not in it, or before it was read. */
export function useSpace(id: string): SpaceState | undefined {
  return useLive((state) => state.spaces[id]);
}

/** How an agent is at this moment, and with which tool it is busy. */
export function usePresence(agent: string): Presence | undefined {
  return useLive((state) => state.presence[agent]);
}

/** The agents of the organization, each as it is at this moment. */
export function useAgents(): UseQueryResult<Agent[]> {
  const presence = useLive((state) => state.presence);
  const query = useQuery({ queryKey: ["agents"], queryFn: allAgents, staleTime: 30_000 });
  const data = useMemo(() => query.data?.map((each) => ({ ...each, status: presence[each.id]?.status ?? each.status })), [query.data, presence]);
  return { ...query, data } as UseQueryResult<Agent[]>;
}

/** One of them, by its id or `@handle`, with what everyone may know of it; admins see its definition. */
export function useAgent(id: string): UseQueryResult<Schemas["AgentDetail"]> {
  return useQuery(oneAgent(id));
}

/** Some of them, in the order of the ids. */
export function useSomeAgents(ids: readonly string[]): UseQueryResult<Schemas["AgentDetail"]>[] {
  return useQueries({ queries: ids.map(oneAgent) });
}

/** A function that has everything about agents asked for again. */
export function useAgentsChanged(): () => Promise<void> {
  const client = useQueryClient();
  return () => client.invalidateQueries({ queryKey: ["agents"] });
}

/** The people, agents and services of the organization, by handle. */
export function useEntities(): UseQueryResult<Schemas["EntityOut"][]> {
  return useQuery({ queryKey: ["entities"], queryFn: allEntities, staleTime: 30_000 });
}

const oneAgent = (id: string) =>
  queryOptions({
    queryKey: ["agents", id],
    queryFn: ({ signal }) => get("/api/agents/{agent_id}", { path: { agent_id: id }, signal }),
  });

async function allAgents(): Promise<Agent[]> {
  const agents: Agent[] = [];
  for (let after: string | undefined; ; ) {
    const page = await get("/api/agents", { query: { after, limit: 200 } });
    agents.push(...page.agents);
    if (!page.next) return agents;
    after = page.next;
  }
}

async function allEntities(): Promise<Schemas["EntityOut"][]> {
  const entities: Schemas["EntityOut"][] = [];
  for (let after: string | undefined; ; ) {
    const page = await get("/api/entities", { query: { after, limit: 200 } });
    entities.push(...page.entities);
    if (!page.next) return entities;
    after = page.next;
  }
}
