import { type FormEvent, type ReactNode, useState } from "react";
import { inWords, patch } from "../denizen/api";
import { useStore } from "../denizen/live";
import type { SpaceState } from "../denizen/store";
import { Button } from "../ui/Button";
import { Dialog, DialogFoot } from "../ui/Dialog";
import { Checkbox, Select, TextField } from "../ui/Field";
import css from "./spaces.module.css";

/** The name of a space, who can see it, and which of its agents answer. */
export function Rename({ space, onClose }: { space: SpaceState; onClose: () => void }): ReactNode {
  const store = useStore();
  const [name, setName] = useState(space.info.name);
  const [hidden, setHidden] = useState(space.info.private);
  const [floor, setFloor] = useState(space.info.floor);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    try {
      const path = { space_id: space.info.id };
      store.dispatch({ type: "space", space: await patch("/api/spaces/{space_id}", { path, body: { name: name.trim(), private: hidden, floor } }) });
      onClose();
    } catch (problem) {
      setError(inWords(problem));
      setBusy(false);
    }
  };
  return (
    <Dialog title="Space settings" onClose={onClose}>
      <form onSubmit={(event) => void submit(event)} className={css.form}>
        <TextField label="Name" required autoFocus value={name} error={error} onChange={(event) => setName(event.target.value)} />
        <Checkbox
          label="Private"
          hint="Only members can see this space."
          checked={hidden}
          onChange={(event) => setHidden(event.target.checked)}
        />
        {space.info.members.filter((each) => each.kind === "agent").length > 1 && (
          <Select label="Which agents answer" hint="When there are several and a message mentions none of them." value={floor} onChange={(event) => setFloor(event.target.value as typeof floor)}>
            <option value="one">One agent answers</option>
            <option value="addressed">Only agents that are mentioned</option>
            <option value="all">All agents may answer</option>
          </Select>
        )}
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
