import { type KeyboardEvent, type ReactNode, useId, useRef, useState } from "react";
import { IconButton } from "./Button";
import { classes } from "./classes";
import css from "./ui.module.css";

export interface MenuItem {
  label: string;
  icon?: ReactNode;
  onSelect: () => void;
  danger?: boolean;
}

interface MenuProps {
  label: string;
  icon: ReactNode;
  items: MenuItem[];
  className?: string;
  /** Called when it opens and closes. */
  onToggle?: (open: boolean) => void;
}

/** A button that opens a list of things to do. */
export function Menu({ label, icon, items, className, onToggle }: MenuProps): ReactNode {
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const id = useId();

  const place = (): void => {
    const at = button.current!.getBoundingClientRect();
    const box = list.current!;
    const below = at.bottom + box.offsetHeight + 8 < window.innerHeight;
    box.style.top = `${Math.max(8, below ? at.bottom + 4 : at.top - box.offsetHeight - 4)}px`;
    box.style.left = `${Math.max(8, Math.min(at.right - box.offsetWidth, window.innerWidth - box.offsetWidth - 8))}px`;
  };
  const close = (): void => list.current?.hidePopover();

  return (
    <>
      <IconButton
        ref={button}
        label={label}
        icon={icon}
        className={className}
        aria-haspopup="menu"
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        onClick={() => {
          if (open) return close();
          list.current!.showPopover();
          place();
          list.current!.querySelector<HTMLElement>("[role=menuitem]")?.focus();
        }}
      />
      <div
        ref={list}
        id={id}
        role="menu"
        aria-label={label}
        popover="auto"
        className={css.menu}
        onKeyDown={move}
        onToggle={(event) => {
          const now = event.newState === "open";
          setOpen(now);
          onToggle?.(now);
          // Where the focus was, unless what was chosen has taken it.
          if (!now && (document.activeElement === document.body || list.current?.contains(document.activeElement))) button.current?.focus();
        }}
      >
        {items.map((item) => (
          <button
            key={item.label}
            type="button"
            role="menuitem"
            tabIndex={-1}
            className={classes(css.menuItem, item.danger && css.bad)}
            onClick={() => {
              close();
              item.onSelect();
            }}
          >
            {item.icon}
            {item.label}
          </button>
        ))}
      </div>
    </>
  );
}

function move(event: KeyboardEvent<HTMLElement>): void {
  const items = [...event.currentTarget.querySelectorAll<HTMLElement>("[role=menuitem]")];
  const at = items.indexOf(document.activeElement as HTMLElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  items[(to + items.length) % items.length]?.focus();
}
