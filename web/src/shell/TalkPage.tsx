import { Lock } from "lucide-react";
import type { ComponentProps, ReactNode } from "react";
import { MenuButton } from "./Page";
import css from "./talk.module.css";

interface TalkPageProps {
  title: string;
  /** What tells it from others of the same name. */
  hint?: string | undefined;
  isPrivate: boolean;
  /** Beside the title. */
  actions: ReactNode;
  children: ReactNode;
}

/** The screen of a conversation: it is as high as the window, and what was said scrolls inside it. */
export function TalkPage({ title, hint, isPrivate, actions, children }: TalkPageProps): ReactNode {
  return (
    <div className={css.talk}>
      <header className={css.head}>
        <MenuButton />
        <div className={css.title}>
          <h1>{title}</h1>
          {isPrivate && (
            <span title="Private: only members can see this space.">
              <Lock size={15} aria-label="Private" />
            </span>
          )}
          {hint && <span className={css.hint}>{hint}</span>}
        </div>
        {actions}
      </header>
      <main className={css.talk}>{children}</main>
    </div>
  );
}

/** Who takes part, in the head of a conversation. */
export function HeadButton(props: ComponentProps<"button">): ReactNode {
  return <button type="button" className={css.headButton} {...props} />;
}
