/** What the screens of a stance ask the server, and what is asked again when it has changed. */
import { type QueryKey, useQuery, useQueryClient } from "@tanstack/react-query";
import { get } from "../denizen/api";
import { useIsAdmin } from "../denizen/hooks";

/** Someone in a conversation that they stand to: an agent in a space, or a voice of a panel. */
export type Place = {
  /** What the key of everything that is asked here begins with. */
  key: QueryKey;
  /** What tells of it, this and elsewhere. */
  tells: QueryKey[];
  /** Of whoever stands to it. */
  name: string;
  /** Of the conversation, where one has to say which. */
  called: string;
  /** The metaprompts that it has beside those of the house. */
  own: string[];
  /** A turn, and where it can be looked at. */
  turn: (number: number) => { words: string; href?: string };
} & Asked;

/** Where it is asked about. Agents and voices have the same under their roots. */
interface Asked {
  root: "/api/agents/{agent_id}/stances/{conversation_id}" | "/api/panels/{panel_id}/stances/{voice}";
  path: { agent_id: string; conversation_id: string } | { panel_id: string; voice: string };
}

/** An agent in a space; `at` is the address of its mind. */
export function ofAgent(agent: string, name: string, own: string[], space: string, called: string, at: string): Place {
  const key = ["stance", agent, space];
  return {
    root: "/api/agents/{agent_id}/stances/{conversation_id}",
    path: { agent_id: agent, conversation_id: space },
    key,
    tells: [key, ["agents", agent, "mind"]],
    name,
    called: called || "this conversation",
    own,
    turn: (number) => ({ words: `Cycle ${number}`, href: `${at}/life/${number}` }),
  };
}

/** An advisor in a panel, or the plain `assistant`. Asked again with the panel, whenever that has changed. */
export function ofVoice(panel: string, voice: string, name: string, own: string[]): Place {
  return {
    root: "/api/panels/{panel_id}/stances/{voice}",
    path: { panel_id: panel, voice },
    key: [...voicesKey(panel), voice],
    tells: [voicesKey(panel)],
    name,
    called: "",
    own,
    turn: (number) => ({ words: `Turn ${number}` }),
  };
}

function voicesKey(panel: string): string[] {
  return ["panels", panel, "stances"];
}

/** How the voices of a panel stand, in its order. */
export function useVoices(panel: string) {
  return useQuery({
    queryKey: voicesKey(panel),
    queryFn: async ({ signal }) => (await get("/api/panels/{panel_id}/stances", { path: { panel_id: panel }, signal })).stances,
  });
}

/** A function that has everything about how one stands there asked for again. */
export function useStanceChanged({ tells }: Place): () => Promise<void> {
  const client = useQueryClient();
  return async () => {
    await Promise.all(tells.map((queryKey) => client.invalidateQueries({ queryKey })));
  };
}

/** The prompt profiles of the house, with what they add to instructions: for admins; others are not told. */
export function useProfiles() {
  const isAdmin = useIsAdmin();
  return useQuery({ queryKey: ["profiles"], queryFn: ({ signal }) => get("/api/profiles", { signal }), staleTime: 30_000, enabled: isAdmin });
}

/** The names of what reflection can be set to and asked. */
export function useReflectionNames() {
  return useQuery({ queryKey: ["reflection"], queryFn: ({ signal }) => get("/api/reflection", { signal }), staleTime: 30_000 });
}
