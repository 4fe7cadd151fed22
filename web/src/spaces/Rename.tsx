import { type FormEvent, type ReactNode, useState } from "react";
import { inWords, patch } from "../denizen/api";
import { useStore } from "../denizen/live";
import type { SpaceState } from "../denizen/store";
import { Button } from "../ui/Button";
import { Dialog, DialogFoot } from "../ui/Dialog";
import { Checkbox, TextField } from "../ui/Field";
import css from "./spaces.module.css";

/** Another name for a space, or another answer to who may know of it. */
export function Rename({ space, onClose }: { space: SpaceState; onClose: () => void }): ReactNode {
  const store = useStore();
  const [name, setName] = useState(space.info.name);
  const [hidden, setHidden] = useState(space.info.private);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    try {
      const path = { space_id: space.info.id };
      store.dispatch({ type: "space", space: await patch("/api/spaces/{space_id}", { path, body: { name: name.trim(), private: hidden } }) });
      onClose();
    } catch (problem) {
      setError(inWords(problem));
      setBusy(false);
    }
  };
  return (
    <Dialog title="Rename the space" onClose={onClose}>
      <form onSubmit={(event) => void submit(event)} className={css.form}>
        <TextField label="Name" required autoFocus value={name} error={error} onChange={(event) => setName(event.target.value)} />
        <Checkbox
          label="Private"
          hint="Whoever is not in it does not know of it, nor of what is said in it."
          checked={hidden}
          onChange={(event) => setHidden(event.target.checked)}
        />
        <DialogFoot>
          <Button variant="quiet" onClick={onClose}>
            Cancel
          </Button>
          <Button variant="primary" type="submit" busy={busy} disabled={!name.trim()}>
            Save
          </Button>
        </DialogFoot>
      </form>
    </Dialog>
  );
}
