import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useState } from "react";
import { get, inWords, patch, put } from "../denizen/api";
import { useMe } from "../denizen/hooks";
import { useStore } from "../denizen/live";
import type { SpaceState } from "../denizen/store";
import { Button } from "../ui/Button";
import { Dialog, DialogFoot } from "../ui/Dialog";
import { Checkbox, Select, TextField } from "../ui/Field";
import { type Chosen, chosenFrom, Keeping, wantedOf } from "./Keeping";
import css from "./spaces.module.css";

/** The name of a space, who can see it, which of its agents answer, and how long its messages are kept. */
export function Rename({ space, onClose }: { space: SpaceState; onClose: () => void }): ReactNode {
  const store = useStore();
  const [name, setName] = useState(space.info.name);
  const [hidden, setHidden] = useState(space.info.private);
  const [floor, setFloor] = useState(space.info.floor);
  const [keeping, setKeeping] = useState<Chosen | null>(null);
  const me = useMe();
  const client = useQueryClient();
  const mine = space.info.members.find((each) => each.id === me.id)?.role;
  const manages = [mine, me.role].some((role) => role === "owner" || role === "admin");
  const path = { space_id: space.info.id };
  const queryKey = ["retention", space.info.id];
  const told = useQuery({ queryKey, enabled: manages, queryFn: ({ signal }) => get("/api/spaces/{space_id}/retention", { path, signal }) }).data;
  const wanted = keeping && wantedOf(keeping);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      if (wanted) client.setQueryData(queryKey, await put("/api/spaces/{space_id}/retention", { path, body: wanted }));
      store.dispatch({ type: "space", space: await patch("/api/spaces/{space_id}", { path, body: { name: name.trim(), private: hidden, floor } }) });
      onClose();
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return (
    <Dialog title="Space settings" onClose={onClose}>
      <form onSubmit={(event) => void submit(event)} className={css.form}>
        <TextField label="Name" required autoFocus maxLength={120} value={name} onChange={(event) => setName(event.target.value)} />
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
        {told && <Keeping told={told} chosen={keeping ?? chosenFrom(told)} onChoose={setKeeping} />}
        {error !== null && (
          <p className={css.fault} role="alert">
            {inWords(error)}
          </p>
        )}
        <DialogFoot onCancel={onClose}>
          <Button variant="primary" type="submit" busy={busy} disabled={!name.trim() || (keeping !== null && wanted === null)}>
            Save
          </Button>
        </DialogFoot>
      </form>
    </Dialog>
  );
}
