import { type FormEvent, type ReactNode, useState } from "react";
import { type Advisor, ApiError, inWords, patch, post } from "../denizen/api";
import { Button } from "../ui/Button";
import { DialogFoot } from "../ui/Dialog";
import { Checkbox, Field, TextArea, TextField } from "../ui/Field";
import { useAct } from "../ui/useAct";
import { AssertionsFields, filled } from "./AssertionsDialog";
import { ModelInput } from "./ModelInput";
import css from "./panel.module.css";
import { PhasesFields } from "./PhasesFields";
import { ReflectionFields } from "./ReflectionFields";
import { phaseDrafts, phaseFault, phasesOf } from "./words";

/** An advisor to be made, or changed: who it is, and with what it answers. */
export function AdvisorForm({ panel, advisor, groups, onDone }: { panel: string; advisor: Advisor | null; groups: string[]; onDone: () => void }): ReactNode {
  const [name, setName] = useState(advisor?.name ?? "");
  const [description, setDescription] = useState(advisor?.description ?? "");
  const [colour, setColour] = useState(advisor?.colour ?? "");
  const [group, setGroup] = useState(advisor?.group ?? "");
  const [model, setModel] = useState(advisor?.model ?? "");
  const [tokens, setTokens] = useState(advisor?.max_tokens ? String(advisor.max_tokens) : "");
  const [reasoning, setReasoning] = useState(advisor?.reasoning ?? false);
  const [active, setActive] = useState(advisor?.active ?? true);
  const [phases, setPhases] = useState(() => phaseDrafts(advisor?.phases ?? []));
  const [assertions, setAssertions] = useState(advisor?.assertions ?? []);
  const [reflection, setReflection] = useState(advisor?.reflection ?? null);
  const { busy, error, run } = useAct();

  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const body = {
      name: name.trim(),
      description: description.trim(),
      colour,
      group: group.trim(),
      model: model || null,
      max_tokens: tokens ? Number(tokens) : null,
      reasoning,
      active,
      phases: phases.length > 0 ? phasesOf(phases) : null,
      assertions: filled(assertions),
      ...(reflection !== (advisor?.reflection ?? null) && { reflection }),
    };
    void run(async () => {
      if (advisor) await patch("/api/panels/{panel_id}/advisors/{advisor_id}", { path: { panel_id: panel, advisor_id: advisor.id }, body });
      else await post("/api/panels/{panel_id}/advisors", { path: { panel_id: panel }, body });
      onDone();
    });
  };
  return (
    <form className={css.form} onSubmit={submit}>
      <div className={css.pair}>
        <TextField label="Name" required autoFocus maxLength={100} value={name} onChange={(event) => setName(event.target.value)} hint={advisor ? `Addressed as @${advisor.handle}` : undefined} />
        <Field label="Colour">
          {(props) => <input {...props} type="color" className={css.colour} value={colour || "#8a8b92"} onChange={(event) => setColour(event.target.value)} />}
        </Field>
      </div>
      <TextArea
        label="Description"
        rows={4}
        maxLength={20_000}
        hint="Its perspective, as an instruction: “You look for the encounter.”"
        value={description}
        onChange={(event) => setDescription(event.target.value)}
      />
      <div className={css.checksRow}>
        <Checkbox label="Active" hint="Answers when no advisor is addressed." checked={active} onChange={(event) => setActive(event.target.checked)} />
        <Checkbox label="Reasoning" hint="Use the model's thinking if it has one." checked={reasoning} onChange={(event) => setReasoning(event.target.checked)} />
      </div>
      <details className={css.more}>
        <summary>Group, model, reflection, assertions, phases</summary>
        <div className={css.form}>
          <TextField label="Group" hint="@group asks all its members." maxLength={60} list="panel-groups" value={group} onChange={(event) => setGroup(event.target.value)} />
          <datalist id="panel-groups">
            {groups.map((each) => (
              <option key={each} value={each} />
            ))}
          </datalist>
          <div className={css.pair}>
            <ModelInput label="Model" placeholder="Panel default" value={model} onChange={setModel} />
            <TextField label="Maximum tokens" type="number" min={1} max={200_000} placeholder="Panel default" value={tokens} onChange={(event) => setTokens(event.target.value)} />
          </div>
          <ReflectionFields hint="Whether it reflects on how people feel." otherwise="Panel default" before={advisor?.reflection ?? null} value={reflection} onChange={setReflection} />
          <AssertionsFields value={assertions} onChange={setAssertions} />
          <PhasesFields otherwise="No phases of its own: those of the panel apply." value={phases} onChange={setPhases} />
        </div>
      </details>
      {error !== null && (
        <p className={css.failure} role="alert">
          {error instanceof ApiError && error.errors[0] ? `${error.errors[0].field}: ${error.errors[0].message}` : inWords(error)}
        </p>
      )}
      <DialogFoot onCancel={onDone}>
        <Button variant="primary" type="submit" busy={busy} disabled={!name.trim() || phaseFault(phases) !== null}>
          {advisor ? "Save" : "Add advisor"}
        </Button>
      </DialogFoot>
    </form>
  );
}
