import type { ReactNode } from "react";
import { classes } from "./classes";
import css from "./ui.module.css";

export type Tone = "plain" | "accent" | "good" | "warn" | "bad";

export function Badge({ tone = "plain", children, title }: { tone?: Tone; children: ReactNode; title?: string }): ReactNode {
  return (
    <span className={classes(css.badge, tone !== "plain" && css[tone])} title={title}>
      {children}
    </span>
  );
}
