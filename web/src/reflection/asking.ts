/** What the screens of a stance ask the server, and what is asked again when it has changed. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { get } from "../denizen/api";

/** An agent in a conversation. */
export interface Place {
  agent: string;
  space: string;
}

/** A function that has everything about how the agent stands to it asked for again. */
export function useStanceChanged({ agent, space }: Place): () => Promise<void> {
  const client = useQueryClient();
  return async () => {
    await client.invalidateQueries({ queryKey: ["stance", agent, space] });
    await client.invalidateQueries({ queryKey: ["agents", agent, "mind"] });
  };
}

export function useProfiles() {
  return useQuery({ queryKey: ["profiles"], queryFn: ({ signal }) => get("/api/profiles", { signal }), staleTime: 30_000 });
}
