import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useState } from "react";
import { get, patch, type Schemas } from "../denizen/api";
import { useMe } from "../denizen/hooks";
import { useStore } from "../denizen/live";
import { MOST_DAYS } from "../spaces/Keeping";
import { Button } from "../ui/Button";
import { Fault } from "../ui/Confirm";
import { Checkbox, Select, TextField } from "../ui/Field";
import { Loaded } from "../ui/States";
import { useToast } from "../ui/Toast";
import { useAct } from "../ui/useAct";
import css from "./admin.module.css";
import { faultOf, Section } from "./parts";

/** The organization's name, and what holds for all of it. */
export default function Settings(): ReactNode {
  const told = useQuery({ queryKey: ["organization"], queryFn: ({ signal }) => get("/api/organization", { signal }) });
  return (
    <Section title="Organization" about="Name and settings of the organization. Only owners can change them.">
      <Loaded query={told} lines={4}>
        {(organization) => <Form organization={organization} />}
      </Loaded>
    </Section>
  );
}

function Form({ organization }: { organization: Schemas["OrganizationDetail"] }): ReactNode {
  const me = useMe();
  const store = useStore();
  const client = useQueryClient();
  const say = useToast();
  const act = useAct();
  const before = organization.settings?.spaces_by ?? "member";
  const [name, setName] = useState(organization.name);
  const [by, setBy] = useState(before);
  const picturesBefore = organization.settings?.remote_pictures ?? false;
  const [pictures, setPictures] = useState(picturesBefore);
  const kept = String(organization.settings?.keep_days ?? 0);
  const archived = organization.settings?.archive_expired ?? false;
  const [days, setDays] = useState(kept);
  const [archive, setArchive] = useState(archived);
  const isNumberOfDays = /^\d+$/.test(days.trim()) && Number(days) <= MOST_DAYS;
  const owner = me.role === "owner";
  const same =
    name.trim() === organization.name && by === before && pictures === picturesBefore && days === kept && archive === archived;
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    void act.run(async () => {
      const settings = { spaces_by: by, remote_pictures: pictures, keep_days: Number(days), archive_expired: archive };
      const now = await patch("/api/organization", { body: { name: name.trim(), settings } });
      client.setQueryData(["organization"], now);
      const whoIAm = { ...me, organization: { ...me.organization, name: now.name } };
      client.setQueryData(["me"], whoIAm);
      store.dispatch({ type: "me", me: whoIAm });
      say(pictures === picturesBefore ? "Saved." : "Saved. Pages show it after they are loaded again.");
    });
  };
  return (
    <form className={css.narrow} onSubmit={submit} noValidate>
      <TextField label="Name" required disabled={!owner} maxLength={120} value={name} onChange={(event) => setName(event.target.value)} error={faultOf(act.error, "name")} />
      <Select label="Who can create spaces" disabled={!owner} value={by} onChange={(event) => setBy(event.target.value as typeof by)}>
        <option value="member">Everyone</option>
        <option value="admin">Admins and owners</option>
      </Select>
      <Checkbox
        label="Show pictures of other sites in messages"
        hint="Otherwise a message shows a link. The other site learns when a message is read, and from which address."
        disabled={!owner}
        checked={pictures}
        onChange={(event) => setPictures(event.target.checked)}
      />
      <TextField
        label="Keep messages for (days)"
        type="number"
        min={0}
        max={MOST_DAYS}
        disabled={!owner}
        value={days}
        error={isNumberOfDays ? null : `Type a whole number of days, from 0 to ${MOST_DAYS}.`}
        hint="0: for ever. Older messages are removed for good, once a day, with what agents remember of them. A space may differ: see its settings."
        onChange={(event) => setDays(event.target.value)}
      />
      {Number(days) > 0 && (
        <Checkbox
          label="Archive messages before they are removed"
          hint="They are written to files on the server."
          disabled={!owner}
          checked={archive}
          onChange={(event) => setArchive(event.target.checked)}
        />
      )}
      {!faultOf(act.error, "name") && <Fault error={act.error} />}
      {owner ? (
        <div>
          <Button type="submit" variant="primary" busy={act.busy} disabled={same || !name.trim() || !isNumberOfDays}>
            Save
          </Button>
        </div>
      ) : (
        <p className={css.faint}>You are here as {me.role}. Ask an owner to change this.</p>
      )}
    </form>
  );
}
