import { CornerUpLeft, SendHorizontal, X } from "lucide-react";
import { type KeyboardEvent, type ReactNode, type Ref, useEffect, useId, useImperativeHandle, useMemo, useRef, useState } from "react";
import type { Message } from "../denizen/api";
import { useStore } from "../denizen/live";
import { send } from "../denizen/send";
import { Avatar } from "../ui/Avatar";
import { IconButton } from "../ui/Button";
import { classes } from "../ui/classes";
import css from "./composer.module.css";
import { useAround } from "./context";
import { candidates, completed, mentionAt, type Wanted } from "./mentions";

const LONGEST = 100_000;
const touch = window.matchMedia("(pointer: coarse)");

export interface ComposerHandle {
  focus: () => void;
}

interface Props {
  ref?: Ref<ComposerHandle>;
  name: string;
  replyTo: Message | null;
  onReplied: () => void;
  onSent: () => void;
  /** The arrow up, where nothing is written: to change what one said last. */
  onEditLast: () => void;
}

/** Where one writes. What is written survives a reload; `@` completes whom one means. */
export function Composer({ ref, name, replyTo, onReplied, onSent, onEditLast }: Props): ReactNode {
  const around = useAround();
  const store = useStore();
  const id = useId();
  const area = useRef<HTMLTextAreaElement>(null);
  const [text, setText] = useDraft(around.space, around.me.id);
  const [wanted, setWanted] = useState<Wanted | null>(null);
  const [chosen, setChosen] = useState(0);
  const others = useMemo(() => [...around.members.values()].filter((each) => each.id !== around.me.id), [around.members, around.me.id]);
  const found = wanted ? candidates(others, wanted.typed) : [];
  const tooLong = text.length > LONGEST;

  useImperativeHandle(ref, () => ({ focus: () => area.current?.focus() }));
  useEffect(() => {
    if (replyTo) area.current?.focus();
  }, [replyTo]);
  useEffect(() => fit(area.current), [text]);

  const look = (): void => {
    const at = area.current!;
    const next = at.selectionStart === at.selectionEnd ? mentionAt(at.value, at.selectionStart) : null;
    setWanted((before) => (before?.start === next?.start && before?.typed === next?.typed ? before : next));
    if (next?.typed !== wanted?.typed) setChosen(0);
  };
  const complete = (handle: string): void => {
    const next = completed(text, wanted!, handle);
    setText(next.text);
    setWanted(null);
    // After the text is there.
    requestAnimationFrame(() => {
      area.current?.focus();
      area.current?.setSelectionRange(next.caret, next.caret);
    });
  };
  const submit = (): void => {
    if (!text.trim() || tooLong) return;
    send(store, around.space, text.trim(), replyTo?.id ?? null);
    setText("");
    setWanted(null);
    onReplied();
    onSent();
    area.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent<HTMLTextAreaElement>): void => {
    if (event.nativeEvent.isComposing) return;
    if (found.length) {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step !== undefined) {
        event.preventDefault();
        return setChosen((chosen + step + found.length) % found.length);
      }
      // Whoever has written the whole handle has nothing to complete: Enter sends.
      if (event.key === "Tab" || (event.key === "Enter" && found[chosen]!.handle !== wanted?.typed.toLowerCase())) {
        event.preventDefault();
        return complete(found[chosen]!.handle);
      }
      if (event.key === "Escape") {
        event.stopPropagation();
        return setWanted(null);
      }
    }
    if (event.key === "Enter" && !event.shiftKey && !touch.matches) {
      event.preventDefault();
      submit();
    } else if (event.key === "ArrowUp" && text === "") {
      event.preventDefault();
      onEditLast();
    } else if (event.key === "Escape" && replyTo) {
      event.stopPropagation();
      onReplied();
    }
  };

  return (
    <div className={css.composer}>
      {found.length > 0 && (
        <ul id={`${id}-list`} role="listbox" aria-label="Mention" className={css.list}>
          {found.map((each, index) => (
            <li
              key={each.id}
              id={`${id}-${index}`}
              role="option"
              aria-selected={index === chosen}
              className={css.option}
              // The caret stays where it is.
              onMouseDown={(event) => event.preventDefault()}
              onClick={() => complete(each.handle)}
            >
              <Avatar name={each.name} id={each.id} kind={each.kind} size="small" />
              <span>{each.name}</span>
              <span className={css.handle}>@{each.handle}</span>
            </li>
          ))}
        </ul>
      )}
      <div className={css.box}>
        {replyTo && (
          <div className={css.reply}>
            <CornerUpLeft size={14} aria-hidden />
            <span className={css.replyText}>
              Reply to <strong>{replyTo.author.name}</strong>: {replyTo.plain.slice(0, 120)}
            </span>
            <IconButton label="Do not reply" icon={<X size={15} />} onClick={onReplied} />
          </div>
        )}
        <div className={css.row}>
          <textarea
            ref={area}
            rows={1}
            className={css.text}
            dir="auto"
            aria-label={`Message to ${name}`}
            aria-autocomplete="list"
            aria-controls={found.length ? `${id}-list` : undefined}
            aria-activedescendant={found.length ? `${id}-${chosen}` : undefined}
            placeholder={`Say something in ${name}`}
            value={text}
            onChange={(event) => {
              setText(event.target.value);
              look();
            }}
            onKeyDown={onKeyDown}
            onSelect={look}
            onBlur={() => setWanted(null)}
          />
          <button type="button" className={classes(css.send)} aria-label="Send" title="Send" disabled={!text.trim() || tooLong} onClick={submit}>
            <SendHorizontal size={18} />
          </button>
        </div>
        {tooLong && (
          <p className={css.tooLong} role="alert">
            A message may have {LONGEST.toLocaleString()} characters; this has {text.length.toLocaleString()}.
          </p>
        )}
      </div>
    </div>
  );
}

function useDraft(space: string, me: string): [string, (text: string) => void] {
  const key = `draft ${me} ${space}`;
  const [text, setText] = useState(() => localStorage.getItem(key) ?? "");
  const keep = (next: string): void => {
    setText(next);
    try {
      if (next) localStorage.setItem(key, next);
      else localStorage.removeItem(key);
    } catch {
      // No room: then it lives as long as the page.
    }
  };
  return [text, keep];
}

/** As high as its text, up to a third of the screen. */
function fit(area: HTMLTextAreaElement | null): void {
  if (!area) return;
  area.style.height = "auto";
  area.style.height = `${Math.min(area.scrollHeight, window.innerHeight / 3)}px`;
}
