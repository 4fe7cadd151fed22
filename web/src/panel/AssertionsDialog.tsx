import { useQueryClient } from "@tanstack/react-query";
import { Plus, Trash2 } from "lucide-react";
import { type FormEvent, type ReactNode, useRef, useState } from "react";
import { type Advisor, inWords, patch } from "../denizen/api";
import { Button, IconButton } from "../ui/Button";
import { Dialog, DialogFoot } from "../ui/Dialog";
import { inputClass } from "../ui/Field";
import { useAct } from "../ui/useAct";
import css from "./panel.module.css";

const MOST = 20;

/** The assertions of an advisor, without blank ones. */
export const filled = (assertions: readonly string[]): string[] => assertions.map((each) => each.trim()).filter(Boolean);

/** What is expected of each reply of an advisor, one field for each assertion. */
export function AssertionsFields({ value, onChange }: { value: string[]; onChange: (value: string[]) => void }): ReactNode {
  const list = useRef<HTMLUListElement>(null);
  const add = (): void => {
    onChange([...value, ""]);
    requestAnimationFrame(() => list.current?.querySelector<HTMLElement>("li:last-child input")?.focus());
  };
  return (
    <fieldset className={css.phases}>
      <legend>Assertions</legend>
      <p className={css.faint}>What you expect of each reply, such as “asks before it advises”. A model checks each reply against them.</p>
      {value.length === 0 && <p className={css.faint}>No assertions yet.</p>}
      <ul ref={list} aria-label="Assertions">
        {value.map((each, at) => (
          <li key={at} className={css.assertion}>
            <input className={inputClass} aria-label={`Assertion ${at + 1}`} maxLength={500} value={each} onChange={(event) => onChange(value.map((one, index) => (index === at ? event.target.value : one)))} />
            <IconButton label={`Remove assertion ${at + 1}`} icon={<Trash2 size={15} />} onClick={() => onChange(value.filter((_, index) => index !== at))} />
          </li>
        ))}
      </ul>
      <div>
        <Button small icon={<Plus size={15} />} disabled={value.length >= MOST} onClick={add}>
          Add assertion
        </Button>
      </div>
    </fieldset>
  );
}

/** The assertions of one advisor, opened from its card. */
export function AssertionsDialog({ panel, advisor, onClose }: { panel: string; advisor: Advisor; onClose: () => void }): ReactNode {
  const client = useQueryClient();
  const [assertions, setAssertions] = useState(advisor.assertions.length > 0 ? advisor.assertions : [""]);
  const { busy, error, run } = useAct();
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    void run(async () => {
      await patch("/api/panels/{panel_id}/advisors/{advisor_id}", { path: { panel_id: panel, advisor_id: advisor.id }, body: { assertions: filled(assertions) } });
      await client.invalidateQueries({ queryKey: ["panels", panel] });
      onClose();
    });
  };
  return (
    <Dialog title={`Assertions of ${advisor.name}`} onClose={onClose}>
      <form className={css.form} onSubmit={submit}>
        <AssertionsFields value={assertions} onChange={setAssertions} />
        {error !== null && (
          <p className={css.failure} role="alert">
            {inWords(error)}
          </p>
        )}
        <DialogFoot onCancel={onClose}>
          <Button variant="primary" type="submit" busy={busy}>
            Save
          </Button>
        </DialogFoot>
      </form>
    </Dialog>
  );
}
