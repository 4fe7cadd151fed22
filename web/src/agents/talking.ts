import { useLocation } from "wouter";
import { inWords, put } from "../denizen/api";
import { useStore } from "../denizen/live";
import { useToast } from "../ui/Toast";

/** A function that leads into the space of the person and one agent alone. */
export function useTalk(): (agent: string) => Promise<void> {
  const store = useStore();
  const say = useToast();
  const [, go] = useLocation();
  return async (agent) => {
    try {
      const space = await put("/api/agents/{agent_id}/space", { path: { agent_id: agent } });
      store.dispatch({ type: "space", space });
      go(`/s/${space.id}`);
    } catch (error) {
      say(inWords(error));
    }
  };
}
