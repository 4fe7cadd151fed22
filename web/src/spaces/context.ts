/** What the rows of a conversation share. */
import { createContext, useContext } from "react";
import type { Me, Member, Message } from "../denizen/api";

export interface Around {
  space: string;
  me: Me;
  members: ReadonlyMap<string, Member>;
  /** Handle → name of those who can be mentioned. */
  known: ReadonlyMap<string, string>;
  /** Whether the person may change what others said here. */
  runs: boolean;
  find: (id: string) => Message | undefined;
  goTo: (seq: number) => void;
  reply: (message: Message) => void;
  /** The same, with the text of the message quoted. */
  quote: (message: Message) => void;
  editing: string | null;
  edit: (id: string | null) => void;
}

/** What messages are being changed to, by their ids: a row that is scrolled away, or another space, does not lose it. */
export const unsavedEdits = new Map<string, { by: string; space: string; text: string }>();

export const AroundContext = createContext<Around | null>(null);

export function useAround(): Around {
  const around = useContext(AroundContext);
  if (around === null) throw new Error("useAround is for what stands in a conversation.");
  return around;
}
