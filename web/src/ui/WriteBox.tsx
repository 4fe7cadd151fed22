import { SendHorizontal } from "lucide-react";
import { type KeyboardEvent, type ReactNode, type Ref, type RefObject, useEffect, useId, useImperativeHandle, useRef, useState } from "react";
import { flushSync } from "react-dom";
import { inWords } from "../denizen/api";
import { type Candidate, candidates, completed, mentionAt, type Wanted } from "./mentions";
import css from "./writeBox.module.css";

/** How many characters may be sent at once. */
export const LONGEST = 100_000;
const touch = window.matchMedia("(pointer: coarse)");
const keyboard = window.matchMedia("(hover: hover) and (pointer: fine)");

export interface WriteBoxHandle {
  focus: () => void;
  /** Takes the focus from a button that is about to go, unless the keyboard of a touch screen would cover the page. */
  takeBack: () => void;
  /** Puts a text before what is written, and the caret at the end. */
  quote: (text: string) => void;
}

interface WriteBoxProps<Whom extends Candidate> {
  ref?: Ref<WriteBoxHandle>;
  label: string;
  placeholder: string;
  /** The name under which the browser keeps what is not sent yet. Another draft is another box: give it a `key`. */
  draft: string;
  /** Those whom `@` completes, what the choice of them is called, and what stands before a name there. */
  whom: readonly Whom[];
  choice: string;
  face: (each: Whom) => ReactNode;
  /** Whoever comes can write at once; where only a screen to touch is at hand, its keyboard would cover the page. */
  inviting: boolean;
  /** What the button does. */
  verb: string;
  /** Sends it. Until that has succeeded, the text stays; why it has failed is said. */
  onSend: (text: string) => Promise<void> | void;
  /** A key that the box has no use for itself. */
  onKey?: (event: KeyboardEvent<HTMLTextAreaElement>) => void;
  /** In the box, above the text. */
  above?: ReactNode;
  /** In the box, before the text. */
  before?: ReactNode;
  /** Whether there is something to send beside the text; `null`: not yet. */
  more?: boolean | null;
  /** Files that were pasted. */
  onFiles?: (files: File[]) => void;
  /** Under the box, about what is written. */
  below?: (text: string) => ReactNode;
}

/** Where one writes. It grows with its text, which survives a reload; `@` completes whom one means; Enter sends. */
export function WriteBox<Whom extends Candidate>(props: WriteBoxProps<Whom>): ReactNode {
  const id = useId();
  const area = useRef<HTMLTextAreaElement>(null);
  const [text, setText] = useDraft(props.draft);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const completing = useCompleting(area, props.whom, setText);
  const { found, chosen } = completing;
  const tooLong = text.length > LONGEST;
  const ready = (text.trim() !== "" || props.more === true) && props.more !== null && !tooLong && !busy;

  const quote = (quoted: string): void => {
    flushSync(() => setText(`${quoted}${area.current!.value}`));
    begin(area.current!);
  };
  useImperativeHandle(props.ref, () => ({ focus: () => area.current?.focus(), takeBack: () => keyboard.matches && begin(area.current!), quote }));
  useEffect(() => fit(area.current!), [text]);
  useEffect(() => {
    if (props.inviting && keyboard.matches) begin(area.current!);
  }, [props.inviting]);

  const submit = async (): Promise<void> => {
    if (!ready) return;
    setBusy(true);
    setError(null);
    try {
      await props.onSend(text.trim());
      // What was written while it was sent stays.
      setText((now) => (now.startsWith(text) ? now.slice(text.length).trimStart() : now));
      completing.end();
    } catch (problem) {
      setError(problem);
    }
    setBusy(false);
    // The button that was pressed cannot have it; whoever went somewhere else meanwhile keeps it there.
    if (document.activeElement === document.body || document.activeElement?.matches(":disabled")) area.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent<HTMLTextAreaElement>): void => {
    if (event.nativeEvent.isComposing || completing.press(event)) return;
    if (event.key === "Enter" && !event.shiftKey && !touch.matches) {
      event.preventDefault();
      void submit();
      return;
    }
    props.onKey?.(event);
    // Outside of the box, letters are shortcuts.
    if (event.key === "Escape" && !event.defaultPrevented) event.currentTarget.blur();
  };

  return (
    <div className={css.write}>
      {found.length > 0 && (
        <ul id={`${id}-list`} role="listbox" aria-label={props.choice} className={css.list}>
          {found.map((each, index) => (
            <li
              key={each.id}
              id={`${id}-${index}`}
              role="option"
              aria-selected={index === chosen}
              className={css.option}
              // The caret stays where it is.
              onMouseDown={(event) => event.preventDefault()}
              onClick={() => completing.complete(each)}
            >
              {props.face(each)}
              <span>{each.name}</span>
              <span className={css.handle}>@{each.handle}</span>
            </li>
          ))}
        </ul>
      )}
      <div className={css.box}>
        {props.above}
        <div className={css.row}>
          {props.before}
          <textarea
            ref={area}
            rows={1}
            className={css.text}
            data-kept
            dir="auto"
            aria-label={props.label}
            aria-describedby={props.below && `${id}-below`}
            aria-autocomplete="list"
            aria-controls={found.length ? `${id}-list` : undefined}
            aria-activedescendant={found.length ? `${id}-${chosen}` : undefined}
            placeholder={props.placeholder}
            value={text}
            onChange={(event) => {
              setText(event.target.value);
              completing.look();
            }}
            onKeyDown={onKeyDown}
            onPaste={(event) => {
              const files = [...event.clipboardData.files];
              if (files.length === 0 || !props.onFiles) return;
              event.preventDefault();
              props.onFiles(files);
            }}
            onSelect={completing.look}
            onBlur={completing.end}
          />
          <button type="button" className={css.send} aria-label={props.verb} title={props.verb} disabled={!ready} onClick={() => void submit()}>
            <SendHorizontal size={18} />
          </button>
        </div>
        {tooLong && (
          <p className={css.fault} role="alert">
            Messages can have {LONGEST.toLocaleString()} characters; this one has {text.length.toLocaleString()}.
          </p>
        )}
        {error !== null && (
          <p className={css.fault} role="alert">
            {inWords(error)}
          </p>
        )}
      </div>
      {props.below && (
        <p className={css.below} id={`${id}-below`}>
          {props.below(text.trim())}
        </p>
      )}
    </div>
  );
}

interface Completing<Whom> {
  /** Those who may be meant, and the place of the one who is chosen. */
  found: Whom[];
  chosen: number;
  /** Looks at what stands before the caret. */
  look: () => void;
  complete: (whom: Whom) => void;
  end: () => void;
  /** Whether the key was for choosing. */
  press: (event: KeyboardEvent) => boolean;
}

function useCompleting<Whom extends Candidate>(area: RefObject<HTMLTextAreaElement | null>, whom: readonly Whom[], setText: (text: string) => void): Completing<Whom> {
  const [wanted, setWanted] = useState<Wanted | null>(null);
  const [chosen, setChosen] = useState(0);
  const found = wanted ? candidates(whom, wanted.typed) : [];
  const look = (): void => {
    const at = area.current!;
    const next = at.selectionStart === at.selectionEnd ? mentionAt(at.value, at.selectionStart) : null;
    setWanted((before) => (before?.start === next?.start && before?.typed === next?.typed ? before : next));
    if (next?.typed !== wanted?.typed) setChosen(0);
  };
  const end = (): void => setWanted(null);
  const complete = (one: Whom): void => {
    const next = completed(area.current!.value, wanted!, one.handle);
    // At once: whoever writes on does not wait for a frame, and the caret would come back to behind the name.
    flushSync(() => {
      setText(next.text);
      end();
    });
    area.current!.focus();
    area.current!.setSelectionRange(next.caret, next.caret);
  };
  const press = (event: KeyboardEvent): boolean => {
    const one = found[chosen];
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (one === undefined) return false;
    if (step !== undefined) setChosen((chosen + step + found.length) % found.length);
    // Whoever has written the whole handle has nothing to complete: Enter sends.
    else if (event.key === "Tab" || (event.key === "Enter" && one.handle !== wanted?.typed.toLowerCase())) complete(one);
    else if (event.key === "Escape") end();
    else return false;
    event.preventDefault();
    return true;
  };
  return { found, chosen, look, complete, end, press };
}

function useDraft(name: string): [string, (text: string | ((now: string) => string)) => void] {
  const [text, setText] = useState(() => localStorage.getItem(name) ?? "");
  const latest = useRef(text);
  latest.current = text;
  const keep = (told: string | ((now: string) => string)): void => {
    const next = typeof told === "string" ? told : told(latest.current);
    setText(next);
    try {
      if (next) localStorage.setItem(name, next);
      else localStorage.removeItem(name);
    } catch {
      // No room: then it lives as long as the page.
    }
  };
  useEffect(() => {
    // Another tab went on writing what stands here, or has sent it. What was written only here stays.
    const follow = ({ key, oldValue, newValue }: StorageEvent): void => {
      if (key === name) setText((here) => (here === (oldValue ?? "") ? (newValue ?? "") : here));
    };
    window.addEventListener("storage", follow);
    return () => window.removeEventListener("storage", follow);
  }, [name]);
  return [text, keep];
}

/** The caret stands behind what is written. A dialog keeps the focus: the browser gives it to nothing behind it. */
function begin(area: HTMLTextAreaElement): void {
  area.focus({ preventScroll: true });
  area.setSelectionRange(area.value.length, area.value.length);
}

/** As high as its text, up to a third of the screen. */
function fit(area: HTMLTextAreaElement): void {
  area.style.height = "auto";
  area.style.height = `${Math.min(area.scrollHeight, window.innerHeight / 3)}px`;
}
