/** What the screens of a stance ask the server, and what is asked again when it has changed. */
import { type QueryKey, useQuery, useQueryClient } from "@tanstack/react-query";
import { get } from "../denizen/api";

/** Someone in a conversation that they stand to: an agent in a space. Everything about it is asked under `root`. */
export interface Place {
  root: "/api/agents/{agent_id}/stances/{conversation_id}";
  path: { agent_id: string; conversation_id: string };
  /** What the keys of all that is asked here begin with. */
  key: QueryKey;
  /** What else tells of it. */
  also: QueryKey;
  /** Of whoever stands to it. */
  name: string;
  /** Of the conversation, where one has to say which. */
  called: string;
  /** A turn, and where it can be looked at. */
  turn: (number: number) => { words: string; href?: string };
}

/** An agent in a space; `at` is the address of its mind. */
export function ofAgent(agent: string, name: string, space: string, called: string, at: string): Place {
  return {
    root: "/api/agents/{agent_id}/stances/{conversation_id}",
    path: { agent_id: agent, conversation_id: space },
    key: ["stance", agent, space],
    also: ["agents", agent, "mind"],
    name,
    called: called || "this conversation",
    turn: (number) => ({ words: `Cycle ${number}`, href: `${at}/life/${number}` }),
  };
}

/** A function that has everything about how one stands there asked for again. */
export function useStanceChanged({ key, also }: Place): () => Promise<void> {
  const client = useQueryClient();
  return async () => {
    await client.invalidateQueries({ queryKey: key });
    await client.invalidateQueries({ queryKey: also });
  };
}

export function useProfiles() {
  return useQuery({ queryKey: ["profiles"], queryFn: ({ signal }) => get("/api/profiles", { signal }), staleTime: 30_000 });
}
