import { type FormEvent, type ReactNode, useState } from "react";
import { useLocation } from "wouter";
import { ApiError, get, inWords, post } from "../denizen/api";
import { useStore } from "../denizen/live";
import { useRequestKey } from "../denizen/requestKey";
import { Button } from "../ui/Button";
import { Dialog, DialogFoot } from "../ui/Dialog";
import { Checkbox, TextArea, TextField } from "../ui/Field";
import { useAct } from "../ui/useAct";
import css from "./panel.module.css";

/** Opens a panel: its name, whoever is known to advise in it already, and whether others may know of it. */
export function NewPanel({ onClose }: { onClose: () => void }): ReactNode {
  const store = useStore();
  const [, go] = useLocation();
  const [name, setName] = useState("");
  const [names, setNames] = useState("");
  const [hidden, setHidden] = useState(true);
  const { busy, error, run } = useAct();
  const key = useRequestKey();
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const advisors = names
      .split("\n")
      .map((each) => each.trim())
      .filter(Boolean)
      .map((each) => ({ name: each, description: "", colour: "", group: "", active: true, reasoning: false }));
    void run(async () => {
      const body = { name: name.trim(), private: hidden, advisors };
      const made = await post("/api/panels", { body, key: key.for(body) });
      store.dispatch({ type: "space", space: await get("/api/spaces/{space_id}", { path: { space_id: made.id } }) });
      onClose();
      go(`/panels/${made.id}`);
    });
  };
  return (
    <Dialog title="New panel" onClose={onClose}>
      <form onSubmit={submit} className={css.form}>
        <p className={css.faint}>Several advisors answer at once, each in its own thread.</p>
        <TextField
          label="Name"
          required
          autoFocus
          maxLength={100}
          value={name}
          onChange={(event) => setName(event.target.value)}
          error={error ? (error instanceof ApiError && error.errors[0] ? error.errors[0].message : inWords(error)) : undefined}
        />
        <TextArea label="Advisors" rows={4} hint="One name per line. Leave empty to get suggestions later." placeholder={"Martin Buber\nA baker of thirty years"} value={names} onChange={(event) => setNames(event.target.value)} />
        <Checkbox label="Private" hint="Only members can see this panel." checked={hidden} onChange={(event) => setHidden(event.target.checked)} />
        <DialogFoot onCancel={onClose}>
          <Button variant="primary" type="submit" busy={busy} disabled={!name.trim()}>
            Create panel
          </Button>
        </DialogFoot>
      </form>
    </Dialog>
  );
}
