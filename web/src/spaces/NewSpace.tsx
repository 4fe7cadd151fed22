import { type FormEvent, type ReactNode, useState } from "react";
import { useLocation } from "wouter";
import { ApiError, inWords, post } from "../denizen/api";
import { useEntities, useMe } from "../denizen/hooks";
import { useStore } from "../denizen/live";
import { useRequestKey } from "../denizen/requestKey";
import { Avatar } from "../ui/Avatar";
import { Button } from "../ui/Button";
import { Dialog, DialogFoot } from "../ui/Dialog";
import { Checkbox, TextField } from "../ui/Field";
import { Skeleton } from "../ui/States";
import { useAct } from "../ui/useAct";
import css from "./spaces.module.css";

/** Opens a space: its name, who else is in it, and whether others may know of it. */
export function NewSpace({ onClose }: { onClose: () => void }): ReactNode {
  const me = useMe();
  const store = useStore();
  const entities = useEntities();
  const [, go] = useLocation();
  const [name, setName] = useState("");
  const [hidden, setHidden] = useState(false);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const { busy, error, run } = useAct();
  const key = useRequestKey();

  const submit = (event: FormEvent): void => {
    event.preventDefault();
    void run(async () => {
      const body = { name: name.trim(), members: [...chosen], private: hidden };
      const space = await post("/api/spaces", { body, key: key.for(body) });
      store.dispatch({ type: "space", space });
      onClose();
      go(`/s/${space.id}`);
    });
  };
  const toggle = (id: string): void => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    setChosen(next);
  };
  const others = entities.data?.filter((each) => each.id !== me.id);
  return (
    <Dialog title="New space" onClose={onClose}>
      <form onSubmit={submit} className={css.form}>
        <TextField label="Name" required autoFocus maxLength={100} value={name} onChange={(event) => setName(event.target.value)} error={error ? inWords(error instanceof ApiError && error.errors[0] ? new Error(error.errors[0].message) : error) : undefined} />
        <fieldset>
          <legend className={css.legend}>Members</legend>
          {others ? (
            <div className={css.choices}>
              {others.length === 0 && <p className={css.faint}>Nobody else yet.</p>}
              {others.map((each) => (
                <label key={each.id} className={css.choice}>
                  <input type="checkbox" checked={chosen.has(each.id)} onChange={() => toggle(each.id)} />
                  <Avatar name={each.name} id={each.id} kind={each.kind} size="small" />
                  <span>{each.name}</span>
                  <span className={css.faint}>@{each.handle}</span>
                </label>
              ))}
            </div>
          ) : (
            <Skeleton lines={3} />
          )}
        </fieldset>
        <Checkbox
          label="Private"
          hint="Only members can see this space."
          checked={hidden}
          onChange={(event) => setHidden(event.target.checked)}
        />
        <DialogFoot onCancel={onClose}>
          <Button variant="primary" type="submit" busy={busy} disabled={!name.trim()}>
            Create space
          </Button>
        </DialogFoot>
      </form>
    </Dialog>
  );
}
