import { Plug } from "lucide-react";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { useModels } from "../agents/ModelField";
import { buttonClass } from "../ui/Button";
import css from "./conversation.module.css";

/** What the demo model says where it cannot help (`models/demo/answering.py`). */
const SAYS_SO = "Administration › Models";

/** Whether an agent's text says how to connect a model. */
export function saysHowToConnect(text: string): boolean {
  return text.includes(SAYS_SO);
}

/** Leads whoever may connect a model to where that is done, as long as there is only the demo model. */
export function ConnectModel(): ReactNode {
  const models = useModels();
  if (!models.data?.may_choose || models.data.default_source !== "demo") return null;
  return (
    <p className={css.connectModel}>
      <Link href="/admin/models" className={buttonClass("primary", true)}>
        <Plug size={16} aria-hidden />
        Connect a model
      </Link>
    </p>
  );
}
