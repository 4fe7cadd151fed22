import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useState } from "react";
import { inWords, type Panel, patch } from "../denizen/api";
import { Button } from "../ui/Button";
import { Dialog, DialogFoot } from "../ui/Dialog";
import { Checkbox, Select, TextArea, TextField } from "../ui/Field";
import { ModelInput } from "./ModelInput";
import css from "./panel.module.css";
import { ReflectionFields } from "./ReflectionFields";
import { phasesFrom } from "./words";

/** How a panel answers, and what it is called. */
export function SettingsDialog({ panel, onClose }: { panel: Panel; onClose: () => void }): ReactNode {
  const client = useQueryClient();
  const before = panel.settings;
  const [name, setName] = useState(panel.name);
  const [model, setModel] = useState(before.model);
  const [utility, setUtility] = useState(before.utility_model);
  const [tokens, setTokens] = useState(String(before.max_tokens));
  const [always, setAlways] = useState(before.synthesis === "always");
  const [crosstalk, setCrosstalk] = useState(before.crosstalk);
  const [phases, setPhases] = useState(() => JSON.stringify(before.phases, null, 2));
  const [reflection, setReflection] = useState(before.reflection ?? null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const [phasesError, setPhasesError] = useState<string | null>(null);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setError(null);
    setPhasesError(null);
    let own;
    try {
      own = phasesFrom(phases) ?? [];
    } catch (problem) {
      return setPhasesError(inWords(problem));
    }
    setBusy(true);
    const settings = { model: model || "default", utility_model: utility, max_tokens: Number(tokens), synthesis: always ? "always" : "on_demand", crosstalk, phases: own, ...(reflection !== (before.reflection ?? null) && { reflection }) };
    try {
      const changed = await patch("/api/panels/{panel_id}", { path: { panel_id: panel.id }, body: { ...(name.trim() === panel.name ? {} : { name: name.trim() }), settings } });
      client.setQueryData<Panel>(["panels", panel.id], changed);
      onClose();
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return (
    <Dialog wide title="Panel settings" onClose={onClose}>
      <form className={css.form} onSubmit={(event) => void submit(event)}>
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
        <Checkbox label="Always add a synthesis" checked={always} onChange={(event) => setAlways(event.target.checked)} />
        <ReflectionFields hint="After each turn, advisors reflect on how people feel. Off: no reflection." before={before.reflection ?? null} value={reflection} onChange={setReflection} />
        <TextArea
          label="Phases"
          className={css.mono}
          rows={7}
          spellCheck={false}
          hint="JSON: a list of name, until_turn and instructions, where {turn} and {of} are replaced by numbers. Turns are counted per advisor."
          value={phases}
          error={phasesError}
          onChange={(event) => setPhases(event.target.value)}
        />
        {error !== null && (
          <p className={css.failure} role="alert">
            {inWords(error)}
          </p>
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
