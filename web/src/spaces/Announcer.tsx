import { type ReactNode, useEffect, useState } from "react";
import type { StreamEvent } from "../denizen/events";
import { useStore } from "../denizen/live";
import { question } from "./calls";
import { type Around, useAround } from "./context";

const LONGEST = 500;
/** Those before are removed: they were read, and nobody should come upon them again. */
const KEPT = 3;

interface Announced {
  id: string;
  words: string;
}

/**
 * Tells screen readers what others say here, each message once and as a whole. The list of messages itself tells
 * nothing: rows come and go in it as it is scrolled, and what an agent writes grows letter by letter.
 */
export function Announcer(): ReactNode {
  const around = useAround();
  const store = useStore();
  const [told, setTold] = useState<Announced[]>([]);
  useEffect(
    () =>
      store.onEvent((event) => {
        const news = announced(event, around);
        if (news) setTold((before) => (before.some((each) => each.id === news.id) ? before : [...before.slice(1 - KEPT), news]));
      }),
    [store, around],
  );
  return (
    <div className="visually-hidden" aria-live="polite" aria-relevant="additions">
      {told.map((each) => (
        <p key={each.id}>{each.words}</p>
      ))}
    </div>
  );
}

function announced(event: StreamEvent, { space, me, members }: Around): Announced | null {
  if (event.type === "message") {
    const { id, author, plain, files, space_id, deleted_at } = event.message;
    if (space_id !== space || author.id === me.id || deleted_at !== null) return null;
    const names = (files ?? []).map((each) => each.name);
    return { id, words: `${author.name}: ${shortened([plain, ...names].filter(Boolean).join(" "))}` };
  }
  if (event.type === "call") {
    const { id, space_id, state, mode, agent_id, why } = event.call;
    const asked = mode === "pause" || mode === "async" || mode === "elicitation";
    if (space_id !== space || state !== "waiting" || !asked) return null;
    return { id, words: `${members.get(agent_id)?.name ?? "An agent"} asks: ${shortened(why ?? question(event.call.arguments))}` };
  }
  return null;
}

function shortened(text: string): string {
  return text.length <= LONGEST ? text : `${text.slice(0, LONGEST)} …`;
}
