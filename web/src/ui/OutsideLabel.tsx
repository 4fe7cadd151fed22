import type { ReactNode } from "react";
import css from "./ui.module.css";

/** Beside what an agent made after it had read text from outside; `written`: somebody outside wrote it. */
export function OutsideLabel({ written }: { written?: boolean }): ReactNode {
  return (
    <span className={css.outside} title={written ? "Agents treat this as text from outside." : "The agent had read text from outside when it wrote this."}>
      {written ? "from outside" : "made from text from outside"}
    </span>
  );
}
