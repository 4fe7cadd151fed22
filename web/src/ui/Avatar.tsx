import { createContext, type ReactNode, useContext, useState } from "react";
import type { Status } from "../denizen/events";
import { classes } from "./classes";
import css from "./ui.module.css";

/** Addresses of the pictures of people and agents, by id. */
export const Pictures = createContext<Readonly<Record<string, string>>>({});

interface AvatarProps {
  name: string;
  /** By which its colour is chosen: it stays when the name changes. */
  id?: string;
  kind?: string;
  size?: "small" | "medium" | "large";
  /** Of an agent. */
  status?: Status;
}

/** Who it is, at a glance: people are round, agents are not. The name has to stand beside it. */
export function Avatar({ name, id, kind, size = "medium", status }: AvatarProps): ReactNode {
  const address = useContext(Pictures)[id ?? ""];
  const [broken, setBroken] = useState<string | undefined>(undefined);
  const shown = address && address !== broken;
  return (
    <span aria-hidden className={classes(css.avatar, css[`hue${hue(id ?? name)}`], kind !== "human" && kind !== undefined && css.agent, size === "small" && css.avatarSmall, size === "large" && css.avatarLarge)}>
      {shown && <img className={css.face} src={address} alt="" onError={() => setBroken(address)} />}
      {!shown && (size === "small" ? [...initials(name)][0] : initials(name))}
      {status && <StatusDot status={status} />}
    </span>
  );
}

/** What each status is called. */
export const STATUS_WORDS: Record<Status, string> = {
  alive: "thinking",
  sleeping: "asleep",
  paused: "waiting for an answer",
  suspended: "suspended",
  dead: "gone",
};

export function StatusDot({ status, labelled }: { status: Status; labelled?: boolean }): ReactNode {
  return (
    <span className={classes(css.dot, css[status])} title={STATUS_WORDS[status]}>
      {labelled && <span className="visually-hidden">{STATUS_WORDS[status]}</span>}
    </span>
  );
}

function initials(name: string): string {
  const words = name.trim().split(/\s+/);
  const first = [...(words[0] ?? "")][0] ?? "?";
  const last = words.length > 1 ? ([...(words.at(-1) ?? "")][0] ?? "") : "";
  return (first + last).toLocaleUpperCase();
}

function hue(text: string): number {
  let sum = 0;
  for (const letter of text) sum = (sum * 31 + letter.codePointAt(0)!) % 9973;
  return sum % 8;
}
