/** What the pages of the administration share: sections, forms, secrets shown once. */
import type { FormEvent, ReactNode } from "react";
import { ApiError } from "../denizen/api";
import { Button } from "../ui/Button";
import { CopyButton } from "../ui/Code";
import { Fault } from "../ui/Confirm";
import { Dialog, DialogFoot } from "../ui/Dialog";
import type { Act } from "../ui/useAct";
import css from "./admin.module.css";

/** A part of a room: its heading, what it is about, what can be done. */
export function Section({ title, about, action, children }: { title: string; about?: ReactNode; action?: ReactNode; children: ReactNode }): ReactNode {
  return (
    <section className={css.section} aria-label={title}>
      <header className={css.sectionHead}>
        <div>
          <h2>{title}</h2>
          {about && <p className={css.about}>{about}</p>}
        </div>
        {action}
      </header>
      {children}
    </section>
  );
}

/** What the server says is wrong with a field; undefined if it says nothing of it. */
export function faultOf(error: unknown, field: string): string | undefined {
  if (!(error instanceof ApiError)) return undefined;
  const found = error.errors.find((each) => each.field === field || each.field.startsWith(`${field}.`));
  if (found) return `${found.message.charAt(0).toUpperCase()}${found.message.slice(1)}.`;
  return error.errors.length === 0 && error.detail.startsWith(`${field}: `) ? error.detail.slice(field.length + 2) : undefined;
}

/** A secret, this once. */
export function Once({ title, about, label, value, onClose }: { title: string; about: ReactNode; label: string; value: string; onClose: () => void }): ReactNode {
  return (
    <Dialog title={title} onClose={onClose} firm>
      <p className={css.about}>{about}</p>
      <div className={css.once}>
        <input readOnly aria-label={label} value={value} onFocus={(event) => event.target.select()} />
        <CopyButton text={value} label={`Copy the ${label.toLowerCase()}`} />
      </div>
      <DialogFoot>
        <Button variant="primary" onClick={onClose}>
          Done
        </Button>
      </DialogFoot>
    </Dialog>
  );
}

/** A form in a dialog. */
export function FormDialog(props: {
  title: string;
  action: string;
  act: Act;
  disabled?: boolean;
  /** Fields whose faults are shown beside them. */
  fields?: string[];
  onSubmit: () => Promise<unknown>;
  onClose: () => void;
  children: ReactNode;
}): ReactNode {
  const { act } = props;
  const beside = (props.fields ?? []).some((field) => faultOf(act.error, field));
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    void act.run(props.onSubmit);
  };
  return (
    <Dialog title={props.title} onClose={props.onClose}>
      <form className={css.form} onSubmit={submit} noValidate>
        {props.children}
        {!beside && <Fault error={act.error} />}
        <DialogFoot onCancel={props.onClose}>
          <Button variant="primary" type="submit" busy={act.busy} disabled={props.disabled}>
            {props.action}
          </Button>
        </DialogFoot>
      </form>
    </Dialog>
  );
}
