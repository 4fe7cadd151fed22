import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef } from "react";
import { Link } from "wouter";
import css from "./ui.module.css";

export interface LinkTab {
  href: string;
  label: ReactNode;
}

/** Tabs that are places: each has an address. */
export function LinkTabs({ label, tabs, current }: { label: string; tabs: LinkTab[]; current: string }): ReactNode {
  const nav = useRef<HTMLElement>(null);
  // There may be more of them than fit: the one that is open is to be seen.
  useEffect(() => {
    nav.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [current]);
  return (
    <nav aria-label={label} className={css.tabs} ref={nav}>
      {tabs.map((tab) => (
        <Link key={tab.href} href={tab.href} className={css.tab} aria-current={tab.href === current ? "page" : undefined}>
          {tab.label}
        </Link>
      ))}
    </nav>
  );
}

export interface Tab<Id extends string> {
  id: Id;
  label: ReactNode;
}

/** Tabs that show one of several things in the same place. */
export function Tabs<Id extends string>(props: {
  label: string;
  tabs: Tab<Id>[];
  current: Id;
  onChange: (id: Id) => void;
  children: ReactNode;
}): ReactNode {
  const id = useId();
  const move = (event: KeyboardEvent): void => {
    const at = props.tabs.findIndex((tab) => tab.id === props.current);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: props.tabs.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = props.tabs[(to + props.tabs.length) % props.tabs.length]!;
    props.onChange(next.id);
    document.getElementById(`${id}-${next.id}`)?.focus();
  };
  return (
    <>
      <div role="tablist" aria-label={props.label} className={css.tabs} onKeyDown={move}>
        {props.tabs.map((tab) => (
          <button
            key={tab.id}
            id={`${id}-${tab.id}`}
            type="button"
            role="tab"
            aria-selected={tab.id === props.current}
            aria-controls={`${id}-panel`}
            tabIndex={tab.id === props.current ? 0 : -1}
            className={css.tab}
            onClick={() => props.onChange(tab.id)}
          >
            {tab.label}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${props.current}`}>
        {props.children}
      </div>
    </>
  );
}
