import { SmilePlus } from "lucide-react";
import { type ReactNode, useId, useRef, useState } from "react";
import { inWords, type Message, put, remove } from "../denizen/api";
import { useStore } from "../denizen/live";
import { IconButton } from "../ui/Button";
import { classes } from "../ui/classes";
import { useToast } from "../ui/Toast";
import { useAround } from "./context";
import css from "./reactions.module.css";

/** What people use most. Any other emoji that someone used on the message can be chosen as well. */
const QUICK = ["👍", "❤️", "😄", "🎉", "🤔", "👀"];
const NAMES: Record<string, string> = { "👍": "Thumbs up", "❤️": "Heart", "😄": "Laughing", "🎉": "Celebration", "🤔": "Thinking", "👀": "Looking" };

function useReact(message: Message): (emoji: string) => Promise<void> {
  const around = useAround();
  const store = useStore();
  const toast = useToast();
  return async (emoji) => {
    const path = { space_id: message.space_id, message_id: message.id, emoji };
    const mine = message.reactions?.some((each) => each.emoji === emoji && each.by.includes(around.me.id));
    const address = "/api/spaces/{space_id}/messages/{message_id}/reactions/{emoji}";
    try {
      store.dispatch({ type: "message.edited", message: await (mine ? remove(address, { path }) : put(address, { path })) });
    } catch (error) {
      toast(inWords(error));
    }
  };
}

/** The reactions under a message; pressing one adds or removes one's own. */
export function Reactions({ message }: { message: Message }): ReactNode {
  const around = useAround();
  const react = useReact(message);
  const reactions = message.reactions ?? [];
  if (reactions.length === 0) return null;
  return (
    <div className={css.reactions} role="group" aria-label="Reactions">
      {reactions.map(({ emoji, by }) => {
        const mine = by.includes(around.me.id);
        const who = by.map((id) => (id === around.me.id ? "You" : (around.members.get(id)?.name ?? "Someone"))).join(", ");
        return (
          <button
            key={emoji}
            type="button"
            className={classes(css.reaction, mine && css.mine)}
            aria-pressed={mine}
            aria-label={`${NAMES[emoji] ?? emoji}: ${who}`}
            title={who}
            onClick={() => void react(emoji)}
          >
            <span aria-hidden>{emoji}</span> {by.length}
          </button>
        );
      })}
    </div>
  );
}

/** A button that opens the choice of reactions. */
export function ReactButton({ message, onToggle }: { message: Message; onToggle: (open: boolean) => void }): ReactNode {
  const react = useReact(message);
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const id = useId();
  const show = (): void => {
    const list = box.current!;
    list.showPopover();
    const at = button.current!.getBoundingClientRect();
    const above = at.top - list.offsetHeight - 4;
    list.style.top = `${above > 8 ? above : at.bottom + 4}px`;
    list.style.left = `${Math.max(8, Math.min(at.right - list.offsetWidth, window.innerWidth - list.offsetWidth - 8))}px`;
    list.querySelector("button")?.focus();
  };
  return (
    <>
      <IconButton
        ref={button}
        label="React"
        icon={<SmilePlus size={16} />}
        aria-haspopup="true"
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        onClick={() => (open ? box.current?.hidePopover() : show())}
      />
      <div
        ref={box}
        id={id}
        popover="auto"
        role="group"
        aria-label="Choose a reaction"
        className={css.choice}
        onToggle={(event) => {
          const now = event.newState === "open";
          setOpen(now);
          onToggle(now);
          if (!now && box.current?.contains(document.activeElement)) button.current?.focus();
        }}
        onKeyDown={(event) => {
          const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
          if (step === undefined) return;
          const all = [...event.currentTarget.querySelectorAll("button")];
          all[(all.indexOf(document.activeElement as HTMLButtonElement) + step + all.length) % all.length]?.focus();
        }}
      >
        {QUICK.map((emoji) => (
          <button
            key={emoji}
            type="button"
            aria-label={NAMES[emoji]}
            title={NAMES[emoji]}
            onClick={() => {
              box.current?.hidePopover();
              void react(emoji);
            }}
          >
            <span aria-hidden>{emoji}</span>
          </button>
        ))}
      </div>
    </>
  );
}
