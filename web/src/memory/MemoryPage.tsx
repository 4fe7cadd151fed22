import { Brain, Search } from "lucide-react";
import { type FormEvent, type ReactNode, useState } from "react";
import { Redirect, useLocation, useSearchParams } from "wouter";
import { useAgents, useIsAdmin } from "../denizen/hooks";
import { Page } from "../shell/Page";
import { Button } from "../ui/Button";
import { inputClass, Select } from "../ui/Field";
import { Empty, Loaded } from "../ui/States";
import { LinkTabs } from "../ui/Tabs";
import { useMemories, useSwitches, type Wanted } from "./asking";
import { MemoryList } from "./MemoryList";
import css from "./memory.module.css";

const ROOMS = {
  you: { label: "About you", scope: "user", about: "Memories about you. Agents recall them when you talk to them alone. Nobody else sees them." },
  agents: { label: "With an agent", scope: "persona", about: "What one agent remembers about you. Only you, this agent and admins can see it." },
  everyone: { label: "For everyone", scope: "organization", about: "Published for the organization. Everyone can see it; admins can correct and forget it." },
} as const;
type Room = keyof typeof ROOMS;
const TABS = Object.entries(ROOMS).map(([name, { label }]) => ({ href: `/memory/${name}`, label }));

/** What is remembered of the reader, between them and agents, and for everyone. */
export default function MemoryPage(): ReactNode {
  const [path] = useLocation();
  const name = path.split("/")[2] ?? "";
  if (!Object.hasOwn(ROOMS, name)) return <Redirect to="/memory/you" replace />;
  const room = name as Room;
  return (
    <Page title="Memory" below={<LinkTabs label="Memory" tabs={TABS} current={`/memory/${room}`} />}>
      <p className={css.about}>{ROOMS[room].about}</p>
      <Switched scope={ROOMS[room].scope} />
      {room === "agents" ? <WithAgents /> : <Found key={room} wanted={{ of: room, q: "" }} />}
    </Page>
  );
}

/** Said where the organization has switched it off. */
function Switched({ scope }: { scope: "user" | "persona" | "organization" }): ReactNode {
  const switches = useSwitches();
  if (switches.data === undefined || (switches.data.enabled && switches.data[scope])) return null;
  return <p className={css.notice}>Switched off by an admin: nothing new is stored and agents recall nothing. You can still correct and forget what is here.</p>;
}

function WithAgents(): ReactNode {
  const agents = useAgents();
  const [params, setParams] = useSearchParams();
  return (
    <Loaded query={agents}>
      {(all) => {
        const chosen = all.find((each) => each.id === params.get("agent")) ?? all[0];
        if (chosen === undefined) return <Empty title="No agents yet.">What an agent remembers about you appears here.</Empty>;
        return (
          <>
            <div className={css.choose}>
              <Select label="Agent" value={chosen.id} onChange={(event) => setParams({ agent: event.target.value })}>
                {all.map((each) => (
                  <option key={each.id} value={each.id}>
                    {each.name}
                  </option>
                ))}
              </Select>
            </div>
            <Found key={chosen.id} wanted={{ of: "between", agent: chosen.id, q: "" }} />
          </>
        );
      }}
    </Loaded>
  );
}

function Found({ wanted }: { wanted: Extract<Wanted, { q: string }> }): ReactNode {
  const [params, setParams] = useSearchParams();
  const admin = useIsAdmin();
  const q = params.get("q") ?? "";
  const [typed, setTyped] = useState(q);
  const query = useMemories({ ...wanted, q });
  const look = (words: string): void =>
    setParams((before) => {
      const next = new URLSearchParams(before);
      if (words) next.set("q", words);
      else next.delete("q");
      return next;
    });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    look(typed.trim());
  };
  return (
    <>
      <form role="search" aria-label="Memories" className={css.search} onSubmit={submit}>
        <input
          className={inputClass}
          type="search"
          aria-label="Search"
          placeholder="Search memories"
          value={typed}
          onChange={(event) => {
            setTyped(event.target.value);
            if (event.target.value === "") look("");
          }}
        />
        <Button type="submit" icon={<Search size={16} />} disabled={!typed.trim()}>
          Search
        </Button>
      </form>
      <MemoryList query={query} changeable={wanted.of !== "everyone" || admin} flat={q !== ""} empty={<Nothing of={wanted.of} searched={q !== ""} />} />
    </>
  );
}

function Nothing({ of, searched }: { of: Wanted["of"]; searched: boolean }): ReactNode {
  if (searched) {
    return (
      <Empty title="No results.">
        <p>Try other or fewer words.</p>
      </Empty>
    );
  }
  return (
    <Empty title={of === "everyone" ? "Nothing published yet." : "No memories yet."} icon={<Brain size={28} aria-hidden />}>
      <p>
        {of === "everyone"
          ? "What admins share from a conversation with the organization appears here."
          : "When a conversation with agents grows, it is summarized, and what is worth keeping appears here."}
      </p>
    </Empty>
  );
}
