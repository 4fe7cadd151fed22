import type { ReactNode } from "react";
import { useEntities, useMe } from "../denizen/hooks";
import { Empty } from "../ui/States";
import { useMemories } from "./asking";
import { MemoryList } from "./MemoryList";
import css from "./memory.module.css";

/** What an agent remembers of people, for whoever looks after it. */
export default function AgentMemories({ agent, name }: { agent: string; name: string }): ReactNode {
  const me = useMe();
  const entities = useEntities();
  const query = useMemories({ of: "agent", agent });
  const whom = (id: string | null): string => (id === me.id ? "of you" : `of ${entities.data?.find((each) => each.id === id)?.name ?? "someone who has left"}`);
  return (
    <>
      <p className={css.about}>What {name} remembers about people, each memory private to the two of them. It recalls them in conversations between the two. Its own notes are under Plans, its full history under Recall.</p>
      <MemoryList
        query={query}
        changeable
        about={(memory) => whom(memory.user_id)}
        empty={
          <Empty title="No memories of people yet.">
            <p>When its conversations grow they are summarized, and what it learned about people appears here.</p>
          </Empty>
        }
      />
    </>
  );
}
