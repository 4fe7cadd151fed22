import { type FormEvent, type ReactNode, useState } from "react";
import { type Advisor, ApiError, inWords, patch, post } from "../denizen/api";
import { Button } from "../ui/Button";
import { DialogFoot } from "../ui/Dialog";
import { Checkbox, Field, TextArea, TextField } from "../ui/Field";
import { ModelInput } from "./ModelInput";
import css from "./panel.module.css";
import { ReflectionFields } from "./ReflectionFields";
import { phasesFrom } from "./words";

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
  const [phases, setPhases] = useState(advisor?.phases ? JSON.stringify(advisor.phases, null, 2) : "");
  const [assertions, setAssertions] = useState(advisor?.assertions.join("\n") ?? "");
  const [reflection, setReflection] = useState(advisor?.reflection ?? null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const [phasesError, setPhasesError] = useState<string | null>(null);

  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setError(null);
    setPhasesError(null);
    let own;
    try {
      own = phasesFrom(phases);
    } catch (problem) {
      return setPhasesError(inWords(problem));
    }
    setBusy(true);
    const body = {
      name: name.trim(),
      description: description.trim(),
      colour,
      group: group.trim(),
      model: model || null,
      max_tokens: tokens ? Number(tokens) : null,
      reasoning,
      active,
      phases: own,
      assertions: assertions.split("\n").map((each) => each.trim()).filter(Boolean),
      ...(reflection !== (advisor?.reflection ?? null) && { reflection }),
    };
    try {
      if (advisor) await patch("/api/panels/{panel_id}/advisors/{advisor_id}", { path: { panel_id: panel, advisor_id: advisor.id }, body });
      else await post("/api/panels/{panel_id}/advisors", { path: { panel_id: panel }, body });
      onDone();
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return (
    <form className={css.form} onSubmit={(event) => void submit(event)}>
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
        <summary>Group, model, phases, expectations, reflection</summary>
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
          <TextArea
            label="Phases"
            className={css.mono}
            rows={5}
            spellCheck={false}
            hint="JSON; empty: the panel's phases. A list of name, until_turn and instructions, where {turn} and {of} are replaced by numbers."
            placeholder='[{"name": "question", "until_turn": 3, "instructions": "Ask one question ({turn} of {of})."}]'
            value={phases}
            error={phasesError}
            onChange={(event) => setPhases(event.target.value)}
          />
          <TextArea label="Expectations" rows={3} hint="One per line, such as “asks before it advises”. Each reply is checked against them." value={assertions} onChange={(event) => setAssertions(event.target.value)} />
          <ReflectionFields hint="Whether it reflects on how people feel." otherwise="Panel default" before={advisor?.reflection ?? null} value={reflection} onChange={setReflection} />
        </div>
      </details>
      {error !== null && (
        <p className={css.failure} role="alert">
          {error instanceof ApiError && error.errors[0] ? `${error.errors[0].field}: ${error.errors[0].message}` : inWords(error)}
        </p>
      )}
      <DialogFoot>
        <Button variant="quiet" onClick={onDone}>
          Cancel
        </Button>
        <Button variant="primary" type="submit" busy={busy} disabled={!name.trim()}>
          {advisor ? "Save" : "Add advisor"}
        </Button>
      </DialogFoot>
    </form>
  );
}
