import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useState } from "react";
import { inWords, type Panel, patch } from "../denizen/api";
import { Button } from "../ui/Button";
import { Dialog, DialogFoot } from "../ui/Dialog";
import { Checkbox, Select, TextField } from "../ui/Field";
import { useAct } from "../ui/useAct";
import { ModelInput } from "./ModelInput";
import css from "./panel.module.css";
import { PhasesFields } from "./PhasesFields";
import { ReflectionFields } from "./ReflectionFields";
import { phaseDrafts, phaseFault, phasesOf } from "./words";

/** How a panel answers, and what it is called. */
export function SettingsDialog({ panel, onClose }: { panel: Panel; onClose: () => void }): ReactNode {
  const client = useQueryClient();
  const before = panel.settings;
  const [name, setName] = useState(panel.name);
  const [model, setModel] = useState(before.model);
  const [utility, setUtility] = useState(before.utility_model);
  const [tokens, setTokens] = useState(String(before.max_tokens));
  const [always, setAlways] = useState(before.synthesis === "always");
  const [others, setOthers] = useState(before.show_others);
  const [crosstalk, setCrosstalk] = useState(before.crosstalk);
  const [phases, setPhases] = useState(() => phaseDrafts(before.phases));
  const [reflection, setReflection] = useState(before.reflection ?? null);
  const { busy, error, run } = useAct();
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const settings = { model: model || "default", utility_model: utility, max_tokens: Number(tokens), synthesis: always ? "always" : "on_demand", crosstalk, show_others: others, phases: phasesOf(phases), ...(reflection !== (before.reflection ?? null) && { reflection }) };
    void run(async () => {
      const changed = await patch("/api/panels/{panel_id}", { path: { panel_id: panel.id }, body: { ...(name.trim() === panel.name ? {} : { name: name.trim() }), settings } });
      client.setQueryData<Panel>(["panels", panel.id], changed);
      onClose();
    });
  };
  return (
    <Dialog wide title="Panel settings" onClose={onClose}>
      <form className={css.form} onSubmit={submit}>
        <TextField label="Name" required maxLength={100} value={name} onChange={(event) => setName(event.target.value)} />
        <div className={css.pair}>
          <ModelInput label="Model" hint="For advisors without their own model." value={model} onChange={setModel} />
          <TextField label="Maximum tokens per reply" type="number" min={1} max={200_000} required value={tokens} onChange={(event) => setTokens(event.target.value)} />
        </div>
        <ModelInput label="Model for suggestions, checks and synthesis" placeholder="Same as the model" value={utility} onChange={setUtility} />
        <Select label="Cross-talk after each message" value={crosstalk} onChange={(event) => setCrosstalk(Number(event.target.value))}>
          {["none", "once", "2 times", "3 times", "4 times", "5 times"].map((each, index) => (
            <option key={each} value={index}>
              {each}
            </option>
          ))}
        </Select>
        <Checkbox label="Advisors see what the others said" hint="Only the previous turn, as a reference. Off: each advisor sees only you and itself." checked={others} onChange={(event) => setOthers(event.target.checked)} />
        <Checkbox label="Always add a synthesis" checked={always} onChange={(event) => setAlways(event.target.checked)} />
        <ReflectionFields hint="After each turn, advisors reflect on how people feel. Off: no reflection." before={before.reflection ?? null} value={reflection} onChange={setReflection} />
        <PhasesFields otherwise="No phases: the default applies, one question in each of the first three turns, then full answers." value={phases} onChange={setPhases} />
        {error !== null && (
          <p className={css.failure} role="alert">
            {inWords(error)}
          </p>
        )}
        <DialogFoot onCancel={onClose}>
          <Button variant="primary" type="submit" busy={busy} disabled={!name.trim() || phaseFault(phases) !== null}>
            Save
          </Button>
        </DialogFoot>
      </form>
    </Dialog>
  );
}
