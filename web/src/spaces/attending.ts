/** What an agent attends to in a space, to be changed. */
import { startTransition, useOptimistic } from "react";
import { get, type Member, patch } from "../denizen/api";
import { useStore } from "../denizen/live";

/** What it attends to, and a function that changes it: shown at once, taken back if the server refuses. */
export function useAttending(space: string, member: Member): [Member["attention"], (attention: Member["attention"]) => Promise<void>] {
  const store = useStore();
  const [shown, show] = useOptimistic(member.attention);
  const attend = (attention: Member["attention"]): Promise<void> => {
    const settled = settle(attention);
    startTransition(async () => {
      show(attention);
      // Who wanted it is told why it is not so.
      await settled.catch(() => undefined);
    });
    return settled;
  };
  const settle = async (attention: Member["attention"]): Promise<void> => {
    await patch("/api/spaces/{space_id}/members/{entity_id}", { path: { space_id: space, entity_id: member.id }, body: { attention } });
    store.dispatch({ type: "space", space: await get("/api/spaces/{space_id}", { path: { space_id: space } }) });
  };
  return [shown, attend];
}
