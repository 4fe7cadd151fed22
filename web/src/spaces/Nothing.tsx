import { MessageCircleQuestion } from "lucide-react";
import type { ReactNode } from "react";
import { useSomeAgents } from "../denizen/hooks";
import { useStore } from "../denizen/live";
import { send } from "../denizen/send";
import { Avatar } from "../ui/Avatar";
import { Button } from "../ui/Button";
import { Empty } from "../ui/States";
import { useAround } from "./context";
import css from "./conversation.module.css";
import { ATTENTION } from "./Members";
import { invitation } from "./status";

const SHOWN = 6;
const FIRST_QUESTION = "What can you do?";

/** Before anything was said: which agents are there, and what they are for. */
export function Nothing(): ReactNode {
  const { members, space } = useAround();
  const store = useStore();
  const agents = [...members.values()].filter((each) => each.kind === "agent");
  const shown = agents.slice(0, SHOWN);
  const known = useSomeAgents(shown.map((each) => each.id));
  // All of it at once: what comes later would move what is there.
  if (known.some((each) => each.isLoading)) return null;
  return (
    <div className={css.nothing}>
      <Empty title="No messages yet.">
        <p>{invitation(agents)}</p>
        {shown.length > 0 && (
          <ul className={css.present} aria-label="Agents in this space">
            {shown.map((each, index) => (
              <li key={each.id}>
                <Avatar name={each.name} id={each.id} kind="agent" />
                <span className={css.presentWords}>
                  <span className={css.author}>{each.name}</span>{" "}
                  <span className={css.presentFaint}>
                    @{each.handle}
                    {each.attention !== "all" && ` · ${ATTENTION[each.attention]}`}
                  </span>
                  {known[index]?.data?.purpose && <span className={css.presentAbout}>{known[index].data.purpose}</span>}
                </span>
              </li>
            ))}
          </ul>
        )}
        {agents.length > SHOWN && <p>And {agents.length - SHOWN} more.</p>}
        {agents.some((each) => each.attention === "all") && (
          <p>
            <Button small icon={<MessageCircleQuestion size={15} />} onClick={() => send(store, space, FIRST_QUESTION)}>
              {FIRST_QUESTION}
            </Button>
          </p>
        )}
      </Empty>
    </div>
  );
}
