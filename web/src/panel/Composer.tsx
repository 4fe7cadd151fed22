import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { SendHorizontal } from "lucide-react";
import { type KeyboardEvent, type ReactNode, useEffect, useId, useMemo, useRef, useState } from "react";
import { handleFrom } from "../agents/handles";
import { dollars, short } from "../ui/amounts";
import { inWords, post, type Schemas } from "../denizen/api";
import { useMe } from "../denizen/hooks";
import { useStore } from "../denizen/live";
import shared from "../spaces/composer.module.css";
import { candidates, completed, mentionAt, type Wanted } from "../spaces/mentions";
import css from "./panel.module.css";
import { answered, coloured, useAround } from "./usePanel";

const LONGEST = 100_000;
const FORETOLD_AFTER_MILLISECONDS = 400;
const touch = window.matchMedia("(pointer: coarse)");

/** Where one asks. `@` completes an advisor or a group; under it stands who will answer, and what it will cost. */
export function Composer(): ReactNode {
  const { panel } = useAround();
  const store = useStore();
  const me = useMe();
  const id = useId();
  const area = useRef<HTMLTextAreaElement>(null);
  const draft = `draft ${me.id} ${panel.id}`;
  const [text, setText] = useState(() => localStorage.getItem(draft) ?? "");
  const [wanted, setWanted] = useState<Wanted | null>(null);
  const [chosen, setChosen] = useState(0);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const key = useRef<{ text: string; key: string } | null>(null);
  const everyone = useMemo(() => addressees(panel.advisors), [panel.advisors]);
  const found = wanted ? candidates(everyone, wanted.typed) : [];
  const tooLong = text.length > LONGEST;

  useEffect(() => {
    const at = area.current!;
    at.style.height = "auto";
    at.style.height = `${Math.min(at.scrollHeight, window.innerHeight / 3)}px`;
    try {
      if (text) localStorage.setItem(draft, text);
      else localStorage.removeItem(draft);
    } catch {
      // No room: then it lives as long as the page.
    }
  }, [text, draft]);

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
    requestAnimationFrame(() => {
      area.current?.focus();
      area.current?.setSelectionRange(next.caret, next.caret);
    });
  };
  const submit = async (): Promise<void> => {
    const said = text.trim();
    if (!said || tooLong || busy) return;
    setBusy(true);
    setError(null);
    // Sent again under the same key it is asked once, whatever had become of the first attempt.
    if (key.current?.text !== said) key.current = { text: said, key: crypto.randomUUID() };
    const sent = key.current.key;
    try {
      await answered(store, panel.id, () => post("/api/panels/{panel_id}/rounds", { path: { panel_id: panel.id }, body: { text: said, organizationId: me.organization.id }, key: sent }), (round) => [round]);
      key.current = null;
      setText("");
      setWanted(null);
    } catch (problem) {
      setError(problem);
    }
    setBusy(false);
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
      if (event.key === "Enter" || event.key === "Tab") {
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
      void submit();
    }
  };

  return (
    <div className={shared.composer}>
      {found.length > 0 && (
        <ul id={`${id}-list`} role="listbox" aria-label="Address" className={shared.list}>
          {found.map((each, index) => (
            <li
              key={each.id}
              id={`${id}-${index}`}
              role="option"
              aria-selected={index === chosen}
              className={shared.option}
              ref={coloured(each.colour)}
              // The caret stays where it is.
              onMouseDown={(event) => event.preventDefault()}
              onClick={() => complete(each.handle)}
            >
              <span className={css.swatch} aria-hidden />
              <span>{each.name}</span>
              <span className={shared.handle}>@{each.handle}</span>
            </li>
          ))}
        </ul>
      )}
      <div className={shared.box}>
        <div className={shared.row}>
          <textarea
            ref={area}
            rows={1}
            className={shared.text}
            dir="auto"
            aria-label={`Message to ${panel.name}`}
            aria-describedby={`${id}-cost`}
            aria-autocomplete="list"
            aria-controls={found.length ? `${id}-list` : undefined}
            aria-activedescendant={found.length ? `${id}-${chosen}` : undefined}
            placeholder={`Ask ${panel.name}`}
            value={text}
            onChange={(event) => {
              setText(event.target.value);
              look();
            }}
            onKeyDown={onKeyDown}
            onSelect={look}
            onBlur={() => setWanted(null)}
          />
          <button type="button" className={shared.send} aria-label="Ask" title="Ask" disabled={!text.trim() || tooLong || busy} onClick={() => void submit()}>
            <SendHorizontal size={18} />
          </button>
        </div>
        {tooLong && (
          <p className={shared.tooLong} role="alert">
            A message may have {LONGEST.toLocaleString()} characters; this has {text.length.toLocaleString()}.
          </p>
        )}
        {error !== null && (
          <p className={shared.tooLong} role="alert">
            {inWords(error)}
          </p>
        )}
      </div>
      <p className={css.foretold} id={`${id}-cost`}>
        <Foretold text={text.trim()} />
      </p>
    </div>
  );
}

/** Advisors, and the groups that they are in. */
function addressees(advisors: readonly Schemas["AdvisorOut"][]): { id: string; handle: string; name: string; kind: string; colour: string }[] {
  const groups = [...new Set(advisors.map((each) => each.group).filter(Boolean))];
  return [
    ...advisors.map((each) => ({ id: each.id, handle: each.handle, name: each.name, kind: "advisor", colour: each.colour })),
    ...groups.map((each) => ({ id: `group ${each}`, handle: handleFrom(each), name: `Everyone of ${each}`, kind: "group", colour: "" })),
  ];
}

/** Who will answer, and what that will cost. */
function Foretold({ text }: { text: string }): ReactNode {
  const { panel } = useAround();
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), FORETOLD_AFTER_MILLISECONDS);
    return () => clearTimeout(timer);
  }, [text]);
  const asked = text !== "" && settled !== "" && settled.length <= LONGEST;
  const query = useQuery({
    queryKey: ["panels", panel.id, "cost", settled],
    queryFn: ({ signal }) => post("/api/panels/{panel_id}/cost", { path: { panel_id: panel.id }, body: { text: settled }, signal }),
    enabled: asked,
    placeholderData: keepPreviousData,
    gcTime: 10_000,
  });
  if (text === "") return panel.advisors.some((each) => each.active) ? "@ asks one of them, or a group." : "Nobody advises here: a plain assistant answers.";
  if (!asked || !query.data) return "…";
  const { advisors, input_tokens, output_tokens, cost_micros, most_micros } = query.data;
  const who = advisors.length <= 3 ? advisors.map((each) => each.name).join(", ") : `${advisors.length} advisors`;
  const tokens = `about ${short(input_tokens + output_tokens)} tokens`;
  if (cost_micros === null) return `${who} · ${tokens}; the price is unknown`;
  if (cost_micros === 0 && !most_micros) return `${who} · ${tokens}, free of charge`;
  return `${who} · about ${dollars(cost_micros / 1_000_000)}, at most ${dollars((most_micros ?? cost_micros) / 1_000_000)}`;
}
