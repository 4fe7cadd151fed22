import { Plus } from "lucide-react";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { useAgents, useIsAdmin } from "../denizen/hooks";
import { Page } from "../shell/Page";
import { Avatar, STATUS_WORDS } from "../ui/Avatar";
import { buttonClass } from "../ui/Button";
import { Empty, Loaded } from "../ui/States";
import css from "./agents.module.css";

/** Everyone who lives here. */
export default function AgentsPage(): ReactNode {
  const agents = useAgents();
  const admin = useIsAdmin();
  const make = (
    <Link href="/agents/new" className={buttonClass("primary", true)}>
      <Plus size={16} /> New agent
    </Link>
  );
  return (
    <Page title="Agents" actions={admin && make}>
      <Loaded query={agents}>
        {(all) =>
          all.length === 0 ? (
            <Empty title="No agents live here yet.">{admin && <p>Make the first one: it takes less than a minute.</p>}</Empty>
          ) : (
            <ul className={css.list}>
              {all.map((agent) => (
                <li key={agent.id}>
                  <Link href={`/agents/${agent.id}/now`} className={css.row}>
                    <Avatar name={agent.name} id={agent.id} kind="agent" status={agent.status} />
                    <span className={css.words}>
                      <span className={css.name}>
                        {agent.name} <span className={css.handle}>@{agent.handle}</span>
                      </span>
                      <span className={css.about}>{agent.about}</span>
                    </span>
                    <span className={css.status}>{STATUS_WORDS[agent.status]}</span>
                  </Link>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Page>
  );
}
