/** How an agent stands to its conversations: which profile it was given and why, and its state of mind in each. */
import { useQuery } from "@tanstack/react-query";
import { ArrowLeft, ChevronRight } from "lucide-react";
import { type FormEvent, type ReactNode, useState } from "react";
import { Link } from "wouter";
import { get, post, type Schemas } from "../denizen/api";
import { useSpaces } from "../denizen/hooks";
import { Badge } from "../ui/Badge";
import { Button } from "../ui/Button";
import { Fault } from "../ui/Confirm";
import { inputClass } from "../ui/Field";
import { Empty, Loaded } from "../ui/States";
import { Time } from "../ui/Time";
import { ofAgent, type Place } from "./asking";
import { ConversationSettings } from "./ConversationSettings";
import css from "./reflection.module.css";
import { Stance } from "./Stance";
import { ownMetaprompts } from "./timeline";

interface StanceTabProps {
  agent: string;
  name: string;
  /** Of its definition. */
  reflection: unknown;
  space: string | undefined;
  /** The address of the agent's mind. */
  at: string;
}

export default function StanceTab({ agent, name, reflection, space, at }: StanceTabProps): ReactNode {
  const spaces = useSpaces();
  const mind = useQuery({ queryKey: ["agents", agent, "mind"], queryFn: ({ signal }) => get("/api/agents/{agent_id}/mind", { path: { agent_id: agent }, signal }) });
  return (
    <Loaded query={mind} lines={8}>
      {({ stances }) => {
        const called = stances.find((each) => each.space_id === space)?.space ?? spaces?.find((each) => each.info.id === space)?.info.name ?? "";
        if (space !== undefined) return <InSpace key={space} agent={agent} place={ofAgent(agent, name, ownMetaprompts(reflection), space, called, at)} at={at} />;
        const known = new Set(stances.map((each) => each.space_id));
        const others = (spaces ?? []).filter(({ info }) => !known.has(info.id) && info.kind === "conversation" && info.members.some((each) => each.id === agent));
        return (
          <>
            <p className={css.about}>How {name} adapts to each conversation: its added instructions, how it reads people's feelings, and the effects.</p>
            {stances.length + others.length === 0 ? (
              <Empty title="No conversations yet.">
                <p>Add it to a space and talk to it.</p>
              </Empty>
            ) : (
              <ul className={css.places} aria-label="Conversations">
                {stances.map((each) => (
                  <Listed key={each.space_id} stance={each} at={at} />
                ))}
                {others.map(({ info }) => (
                  <li key={info.id}>
                    <Link href={`${at}/stance/${info.id}`} className={css.place}>
                      <span className={css.placeWords}>
                        <span className={css.placeName}>{info.name}</span>
                        <span className={css.meta}>
                          <span>no profile or reflection yet</span>
                        </span>
                      </span>
                      <ChevronRight size={17} aria-hidden />
                    </Link>
                  </li>
                ))}
              </ul>
            )}
            <TryProfile />
          </>
        );
      }}
    </Loaded>
  );
}

function InSpace({ agent, place, at }: { agent: string; place: Place; at: string }): ReactNode {
  return (
    <>
      <p>
        <Link href={`${at}/stance`} className={css.back}>
          <ArrowLeft size={15} aria-hidden /> All conversations
        </Link>
      </p>
      <Stance place={place} more={(told) => "settings" in told && <ConversationSettings key={JSON.stringify(told.settings)} agent={agent} place={place} stance={told} />} />
    </>
  );
}

function Listed({ stance, at }: { stance: Schemas["StandingOut"]; at: string }): ReactNode {
  return (
    <li>
      <Link href={`${at}/stance/${stance.space_id}`} className={css.place}>
        <span className={css.placeWords}>
          <span className={css.placeName}>{stance.space}</span>
          <span className={css.meta}>
            <span>{stance.turns === 1 ? "1 turn" : `${stance.turns} turns`}</span>
            {stance.updated_at && <Time value={stance.updated_at} form="ago" />}
            {Object.keys(stance.settings).length > 0 && <span>own settings</span>}
          </span>
        </span>
        <span className={css.badges}>
          {stance.profile.id && <Badge>{stance.profile.id}</Badge>}
          <Badge tone={stance.state.mood === "neutral" ? "plain" : "accent"}>{stance.state.mood}</Badge>
        </span>
        <ChevronRight size={17} aria-hidden />
      </Link>
    </li>
  );
}

/** Which profile a message would have. Nothing is changed. */
function TryProfile(): ReactNode {
  const [text, setText] = useState("");
  const [found, setFound] = useState<Schemas["TriedProfile"] | null>(null);
  const [wrong, setWrong] = useState<unknown>(null);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    post("/api/profiles/try", { body: { text, mode: "" } }).then(
      (told) => {
        setFound(told);
        setWrong(null);
      },
      setWrong,
    );
  };
  return (
    <section className={css.section} aria-label="Test profile rules">
      <h2>Test profile rules</h2>
      <form className={css.line} onSubmit={submit}>
        <input className={inputClass} aria-label="A message" placeholder="Tell me briefly …" value={text} onChange={(event) => setText(event.target.value)} />
        <Button type="submit" disabled={!text.trim()}>
          See
        </Button>
      </form>
      <Fault error={wrong} />
      {found && (
        <div role="status" className={css.outcome}>
          <p>
            <strong>{found.id ?? "None"}</strong> <span className={css.faint}>{found.reason}</span>
          </p>
          {found.text && <pre className={css.prompt}>{found.text}</pre>}
        </div>
      )}
    </section>
  );
}
