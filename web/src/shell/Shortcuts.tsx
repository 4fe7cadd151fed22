import { type ReactNode, useEffect, useRef, useState } from "react";
import { useLocation } from "wouter";
import { useIsAdmin, useMe, useSpaces } from "../denizen/hooks";
import { NewSpace } from "../spaces/NewSpace";
import { Dialog } from "../ui/Dialog";
import { Palette } from "./Palette";
import css from "./palette.module.css";
import { pathOf, sectionsOf, spaceAt } from "./places";
import { type Command, nameOf, NOTHING, press, type Shortcut, SHORTCUTS, shown } from "./shortcutKeys";

const IS_MAC = /mac|iphone|ipad/i.test(navigator.platform);
const OPEN = "denizen:open";

/** Opens the palette, or the sheet of shortcuts, from anywhere. */
export function openOver(what: "palette" | "help"): void {
  window.dispatchEvent(new CustomEvent(OPEN, { detail: what }));
}

/** Listens to the keyboard, and holds what opens by it. */
export function Shortcuts(): ReactNode {
  const [open, setOpen] = useState<"palette" | "help" | "new space" | null>(null);
  const run = useCommands(setOpen);
  useKeys(run);
  useEffect(() => {
    const opened = (event: Event): void => setOpen((event as CustomEvent<"palette" | "help">).detail);
    window.addEventListener(OPEN, opened);
    return () => window.removeEventListener(OPEN, opened);
  }, []);
  const close = (): void => setOpen(null);
  return (
    <>
      {/* Not loaded only now: what is typed meanwhile would go to the page, as text or as shortcuts. */}
      {open === "palette" && <Palette onClose={close} onCommand={run} />}
      {open === "help" && <HelpSheet onClose={close} />}
      {open === "new space" && <NewSpace onClose={close} />}
    </>
  );
}

function useCommands(open: (what: "palette" | "help" | "new space" | null) => void): (command: Command) => void {
  const [path, go] = useLocation();
  const me = useMe();
  const spaces = useSpaces();
  return (command) => {
    switch (command) {
      case "palette":
      case "help":
      case "new space":
        return open(command);
      case "search":
        return go("/search");
      case "home":
        return go("/");
      case "agents":
        return go("/agents");
      case "administration":
        return go("/admin/people");
      case "usage":
        return go("/admin/usage");
      case "me":
        return go("/me");
      case "new agent":
        return go("/agents/new");
      case "next row":
      case "previous row":
        return moveRow(command === "next row" ? 1 : -1);
      case "next space":
      case "previous space": {
        const { shared, direct, panels } = sectionsOf(spaces ?? [], me.id);
        const all = [...shared, ...direct, ...panels];
        const here = all.findIndex((each) => each.info.id === spaceAt(path));
        const step = command === "next space" ? 1 : -1;
        const next = all[(Math.max(here, step > 0 ? -1 : 0) + step + all.length) % all.length];
        if (next) go(pathOf(next));
      }
    }
  };
}

/** The focus goes to the row after, or before, the one that has it: rows are marked with `data-row`. */
function moveRow(step: number): void {
  const rows = [...document.querySelectorAll<HTMLElement>("main [data-row]")];
  if (rows.length === 0) return;
  const here = rows.findIndex((row) => row.contains(document.activeElement) || row.parentElement?.closest("li")?.contains(document.activeElement));
  const next = rows[here < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(Math.max(here + step, 0), rows.length - 1)]!;
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

function useKeys(run: (command: Command) => void): void {
  const admin = useIsAdmin();
  const state = useRef(NOTHING);
  const current = useRef(run);
  useEffect(() => {
    current.current = run;
  });
  useEffect(() => {
    const listen = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || event.isComposing) return;
      const key = nameOf(event);
      // In a dialog, and while something is written, keys are for that.
      if (key === null || document.querySelector("dialog[open]") || (isWriting(event.target) && !leadsAway(key, event.target))) return;
      state.current = press(state.current, key, event.timeStamp, admin);
      if (state.current.command === null) return;
      event.preventDefault();
      current.current(state.current.command);
    };
    window.addEventListener("keydown", listen);
    return () => window.removeEventListener("keydown", listen);
  }, [admin]);
}

function isWriting(target: EventTarget | null): target is HTMLElement {
  return target instanceof HTMLElement && (target.isContentEditable || /^(input|textarea|select)$/i.test(target.tagName));
}

/** The palette opens over whatever is written; to another space one goes from where that is kept (`data-kept`). */
function leadsAway(key: string, from: HTMLElement): boolean {
  return key === "Mod+k" || (key.startsWith("Alt+") && "kept" in from.dataset);
}

/** What the keys do. */
function HelpSheet({ onClose }: { onClose: () => void }): ReactNode {
  const admin = useIsAdmin();
  const known = SHORTCUTS.filter((each) => admin || !each.admin);
  const groups = [...new Set(known.map((each) => each.group))];
  return (
    <Dialog title="Shortcuts" wide onClose={onClose}>
      <div className={css.sheet}>
        {groups.map((group) => (
          <section key={group} aria-label={group}>
            <h3>{group}</h3>
            <dl>
              {known.filter((each) => each.group === group).map((each) => (
                <div key={each.command}>
                  <dt>{each.label}</dt>
                  <dd>
                    <Keys shortcut={each} />
                  </dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
      <p className={css.note}>Escape closes dialogs and leaves text fields. Letter shortcuts do not work while you type.</p>
    </Dialog>
  );
}

export function Keys({ shortcut }: { shortcut: Shortcut }): ReactNode {
  return shortcut.keys.map((key, at) => (
    <span key={key}>
      {at > 0 && <span className={css.then}> then </span>}
      <kbd>{shown(key, IS_MAC)}</kbd>
    </span>
  ));
}
