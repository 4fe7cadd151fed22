import { Plug, X } from "lucide-react";
import { type ReactNode, useState } from "react";
import { Link, useLocation } from "wouter";
import { useModels } from "../agents/ModelField";
import { useMe } from "../denizen/hooks";
import { buttonClass, IconButton } from "../ui/Button";
import css from "./shell.module.css";

const DISMISSED = "connect a model: dismissed";

/** Tells an owner that agents only have the demo model, until they connect another one or put the card away. */
export function ConnectModelCard(): ReactNode {
  const me = useMe();
  const [dismissed, setDismissed] = useState(() => localStorage.getItem(DISMISSED) !== null);
  const [path] = useLocation();
  if (me.role !== "owner" || dismissed || path === "/admin/models") return null;
  const dismiss = (): void => {
    localStorage.setItem(DISMISSED, "yes");
    setDismissed(true);
  };
  return <Card onDismiss={dismiss} />;
}

function Card({ onDismiss }: { onDismiss: () => void }): ReactNode {
  const models = useModels();
  if (!models.data?.may_choose || models.data.default_source !== "demo") return null;
  return (
    <aside className={css.connect} aria-label="Connect a model">
      <Plug size={18} aria-hidden />
      <p>
        <strong>No model is connected yet.</strong> <span>Agents think with the demo model, which does not understand what you write.</span>
      </p>
      <Link href="/admin/models" className={buttonClass("primary", true)}>
        Connect a model
      </Link>
      <IconButton label="Not now" icon={<X size={18} />} onClick={onDismiss} />
    </aside>
  );
}
