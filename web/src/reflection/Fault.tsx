import type { ReactNode } from "react";
import { inWords } from "../denizen/api";
import css from "./reflection.module.css";

export function Fault({ error }: { error: unknown }): ReactNode {
  return error ? (
    <p role="alert" className={css.fault}>
      {inWords(error)}
    </p>
  ) : null;
}
