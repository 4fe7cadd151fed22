import type { ReactNode } from "react";
import { inWords } from "../denizen/api";
import { Button } from "./Button";
import { Dialog, DialogFoot } from "./Dialog";
import css from "./ui.module.css";
import { useAct } from "./useAct";

/** What went wrong, in words; nothing if nothing did. */
export function Fault({ error }: { error: unknown }): ReactNode {
  return error ? (
    <p role="alert" className={css.fault}>
      {inWords(error)}
    </p>
  ) : null;
}

interface ConfirmProps {
  title: string;
  /** What will be true afterwards. */
  children: ReactNode;
  action: string;
  danger?: boolean;
  onConfirm: () => Promise<unknown>;
  /** It was done. */
  onClose: () => void;
  /** It was not; by default the same. */
  onCancel?: () => void;
}

/** Asks before something is done that cannot be undone. */
export function Confirm({ title, children, action, danger = true, onConfirm, onClose, onCancel = onClose }: ConfirmProps): ReactNode {
  const act = useAct();
  return (
    <Dialog title={title} onClose={onCancel}>
      <div className={css.consequence}>{children}</div>
      <Fault error={act.error} />
      <DialogFoot onCancel={onCancel}>
        <Button variant={danger ? "danger" : "primary"} busy={act.busy} onClick={() => void act.run(onConfirm).then((done) => done && onClose())}>
          {action}
        </Button>
      </DialogFoot>
    </Dialog>
  );
}
