import { useMutation } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useState } from "react";
import { put, type Schemas } from "../denizen/api";
import { Button } from "../ui/Button";
import { Fault } from "../ui/Confirm";
import { Select, TextField } from "../ui/Field";
import { useToast } from "../ui/Toast";
import { type Place, useProfiles, useStanceChanged } from "./asking";
import { including, ProfileSelect } from "./ProfileSelect";
import css from "./reflection.module.css";
import { settingsOf } from "./timeline";

/** What holds in this conversation instead of the agent's settings. */
export function ConversationSettings({ agent, place, stance }: { agent: string; place: Place; stance: Schemas["StanceOut"] }): ReactNode {
  const say = useToast();
  const profiles = useProfiles();
  const changed = useStanceChanged(place);
  const before = stance.settings;
  const own = (before["reflection"] ?? {}) as { profile?: string };
  const [preset, setPreset] = useState(String(before["preset"] ?? ""));
  const [mode, setMode] = useState(String(before["mode"] ?? ""));
  const [profile, setProfile] = useState(own.profile ?? "");
  const change = useMutation({
    mutationFn: (body: Schemas["SetStance"]) => put("/api/agents/{agent_id}/stances/{conversation_id}/settings", { path: { agent_id: agent, conversation_id: stance.space_id }, body }),
    onSuccess: async () => {
      say("Saved. Takes effect from the next turn.");
      await changed();
    },
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    change.mutate(settingsOf(before, preset, mode, profile));
  };
  const others = Object.keys(own).filter((each) => each !== "profile");
  return (
    <section className={css.section} aria-label="Conversation settings">
      <h2>Conversation settings</h2>
      <p className={css.about}>Overrides the agent's settings in this conversation.</p>
      <form className={css.form} onSubmit={submit}>
        <div className={css.fields}>
          <Select label="Profile" value={preset} onChange={(event) => setPreset(event.target.value)}>
            <option value="">Chosen by rules</option>
            {including(profiles.data?.presets.map((each) => each.id), preset).map((each) => (
              <option key={each} value={each}>
                {profiles.data?.presets.find((known) => known.id === each)?.label || each}
              </option>
            ))}
          </Select>
          <ProfileSelect label="Reflection" otherwise="Agent default" value={profile} onChange={setProfile} />
          <TextField label="Mode" value={mode} placeholder="the agent's" onChange={(event) => setMode(event.target.value)} />
        </div>
        {others.length > 0 && <p className={css.about}>Other settings, unchanged: {others.join(", ")} of reflection.</p>}
        <Fault error={change.error} />
        <div className={css.buttons}>
          <Button type="submit" variant="primary" busy={change.isPending}>
            Save
          </Button>
          {Object.keys(before).length > 0 && (
            <Button variant="quiet" disabled={change.isPending} onClick={() => change.mutate({})}>
              Clear
            </Button>
          )}
        </div>
      </form>
    </section>
  );
}
