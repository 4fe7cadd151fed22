import { Menu as MenuIcon } from "lucide-react";
import { createContext, type ReactNode, useContext, useEffect } from "react";
import { IconButton } from "../ui/Button";
import css from "./shell.module.css";
import { useUnseen } from "./unseen";

/** Opens the sidebar, where it is not always shown. */
export const MenuOpener = createContext<() => void>(() => undefined);

interface PageProps {
  title: string;
  /** Before the title: whom the screen is about. */
  before?: ReactNode;
  /** Beside the title. */
  actions?: ReactNode;
  /** Under it: tabs, for instance. */
  below?: ReactNode;
  children: ReactNode;
}

/** A screen with a heading, which scrolls. Conversations have a frame of their own. */
export function Page({ title, before, actions, below, children }: PageProps): ReactNode {
  useTitle(title);
  return (
    <div className={css.page}>
      <header className={css.head}>
        <div className={css.headRow}>
          <MenuButton />
          {before}
          <h1 className={css.title}>{title}</h1>
          {actions && <div className={css.actions}>{actions}</div>}
        </div>
        {below}
      </header>
      <main className={css.body}>
        <div className={css.column}>{children}</div>
      </main>
    </div>
  );
}

/** Shown on narrow screens. */
export function MenuButton(): ReactNode {
  const open = useContext(MenuOpener);
  return <IconButton className={css.menuButton} label="Open menu" icon={<MenuIcon size={20} />} onClick={open} />;
}

/** The title of the browser's tab. */
export function useTitle(title: string): void {
  const unseen = useUnseen();
  useEffect(() => {
    document.title = `${unseen ? `(${unseen}) ` : ""}${title ? `${title} · Denizen` : "Denizen"}`;
  }, [title, unseen]);
}
