import { type FormEvent, type ReactNode, useState } from "react";
import { inWords } from "../denizen/api";
import { Button } from "../ui/Button";
import { CopyButton } from "../ui/Code";
import { Dialog, DialogFoot } from "../ui/Dialog";
import { Select, TextArea, TextField } from "../ui/Field";
import css from "./admin.module.css";
import { addonKeys, addonText, alsoUsedBy, fileFrom, idFrom, nameOf, type Preset, type PresetFile, type Rule, withPreset, withRule, wordsIn } from "./presets";

interface FormProps {
  title: string;
  disabled: boolean;
  onSubmit: () => void;
  onClose: () => void;
  children: ReactNode;
}

/** A form whose result goes into the draft; nothing is sent to the server yet. */
function DraftForm({ title, disabled, onSubmit, onClose, children }: FormProps): ReactNode {
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    onSubmit();
    onClose();
  };
  return (
    <Dialog wide title={title} onClose={onClose}>
      <form className={css.form} onSubmit={submit}>
        {children}
        <DialogFoot onCancel={onClose}>
          <Button variant="primary" type="submit" disabled={disabled}>
            Apply
          </Button>
        </DialogFoot>
      </form>
    </Dialog>
  );
}

interface Props {
  file: PresetFile;
  onChange: (file: PresetFile) => void;
  onClose: () => void;
}

/** A preset with the texts of its add-ons; `preset` null: a new one. */
export function PresetForm({ file, addons, preset, onChange, onClose }: Props & { addons: Record<string, string>; preset: Preset | null }): ReactNode {
  const [label, setLabel] = useState(preset?.label ?? preset?.id ?? "");
  const [description, setDescription] = useState(preset?.description ?? "");
  const id = preset?.id ?? idFrom(label);
  const keys = preset ? addonKeys(preset) : [""];
  const [texts, setTexts] = useState(() => keys.map((key) => addonText(file, addons, key)));
  const taken = preset === null && file.presets.some((each) => each.id === id);
  const submit = (): void => {
    const named = Object.fromEntries(keys.map((key, at) => [key || id, texts[at]!]));
    onChange(withPreset(file, addons, { ...preset, id, label: label.trim(), description: description.trim() }, named));
  };
  return (
    <DraftForm title={preset ? `Edit ${nameOf(preset)}` : "New preset"} disabled={!id || taken} onSubmit={submit} onClose={onClose}>
      <TextField label="Name" required autoFocus maxLength={100} value={label} hint={id ? `ID: ${id}` : undefined} error={taken ? "There is a preset with this ID. Use another name." : undefined} onChange={(event) => setLabel(event.target.value)} />
      <TextField label="Description" hint="For people only." maxLength={200} value={description} onChange={(event) => setDescription(event.target.value)} />
      {keys.map((key, at) => {
        const others = preset ? alsoUsedBy(file, preset, key) : [];
        const shared = others.length > 0 ? ` Also used by ${others.map(nameOf).join(", ")}.` : "";
        return (
          <TextArea
            key={key}
            label={keys.length > 1 ? `Instructions: ${key}` : "Instructions"}
            hint={`Added to the agent's own instructions. Empty: nothing is added.${shared}`}
            rows={5}
            maxLength={4_000}
            value={texts[at]}
            onChange={(event) => setTexts(texts.map((each, index) => (index === at ? event.target.value : each)))}
          />
        );
      })}
    </DraftForm>
  );
}

/** A rule; `at` null: a new one. */
export function RuleForm({ file, at, onChange, onClose }: Props & { at: number | null }): ReactNode {
  const before = at === null ? undefined : file.rules?.[at];
  const [id, setId] = useState(before?.id ?? "");
  const [preset, setPreset] = useState(before?.presetId ?? file.presets[0]?.id ?? "");
  const [priority, setPriority] = useState(String(before?.priority ?? 0));
  const [any, setAny] = useState(before?.anyKeywords?.join("\n") ?? "");
  const [all, setAll] = useState(before?.allKeywords?.join("\n") ?? "");
  const [modes, setModes] = useState(before?.modes?.join("\n") ?? "");
  const [least, setLeast] = useState(before?.minMessageChars ? String(before.minMessageChars) : "");
  const [most, setMost] = useState(before?.maxMessageChars != null ? String(before.maxMessageChars) : "");
  const taken = id.trim() !== "" && (file.rules ?? []).some((each, index) => index !== at && each.id === id.trim());
  const submit = (): void => {
    const { maxMessageChars: _, ...rest } = before ?? { presetId: preset };
    const rule: Rule = { ...rest, id: id.trim(), presetId: preset, priority: Number(priority) || 0, anyKeywords: wordsIn(any), allKeywords: wordsIn(all), modes: wordsIn(modes), minMessageChars: Number(least) || 0 };
    onChange(withRule(file, at, most === "" ? rule : { ...rule, maxMessageChars: Number(most) }));
  };
  return (
    <DraftForm title={before ? "Edit rule" : "New rule"} disabled={!preset || taken} onSubmit={submit} onClose={onClose}>
      <div className={css.pair}>
        <TextField label="Name" autoFocus maxLength={100} placeholder="asked-to-be-brief" value={id} error={taken ? "There is a rule with this name. Use another." : undefined} onChange={(event) => setId(event.target.value)} />
        <Select label="Preset" value={preset} onChange={(event) => setPreset(event.target.value)}>
          {file.presets.map((each) => (
            <option key={each.id} value={each.id}>
              {nameOf(each)}
            </option>
          ))}
        </Select>
        <TextField label="Priority" type="number" step={1} hint="The highest is checked first." value={priority} onChange={(event) => setPriority(event.target.value)} />
      </div>
      <TextArea label="Any of these words" hint="One word or phrase per line. At least one has to be in the message." rows={4} value={any} onChange={(event) => setAny(event.target.value)} />
      <TextArea label="All of these words" hint="One per line. All have to be in the message." rows={2} value={all} onChange={(event) => setAll(event.target.value)} />
      <div className={css.pair}>
        <TextField label="At least so many characters" type="number" min={0} step={1} value={least} onChange={(event) => setLeast(event.target.value)} />
        <TextField label="At most so many characters" type="number" min={0} step={1} value={most} onChange={(event) => setMost(event.target.value)} />
      </div>
      <TextArea label="Modes" hint="One per line: a handle of an agent, or a part of it. Empty: all." rows={2} value={modes} onChange={(event) => setModes(event.target.value)} />
    </DraftForm>
  );
}

/** The whole file as JSON, to copy it or to paste another. */
export function FileForm({ file, onChange, onClose }: Props): ReactNode {
  const [text, setText] = useState(() => JSON.stringify(file, null, 2));
  const [error, setError] = useState<unknown>(null);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    try {
      onChange(fileFrom(text));
      onClose();
    } catch (problem) {
      setError(problem);
    }
  };
  return (
    <Dialog wide title="Presets as a file" onClose={onClose}>
      <form className={css.form} onSubmit={submit}>
        <TextArea label="metaprompt-presets.json" className={css.json} rows={18} spellCheck={false} value={text} error={error === null ? undefined : inWords(error)} onChange={(event) => setText(event.target.value)} />
        <DialogFoot>
          <CopyButton text={text} label="Copy the file" />
          <Button variant="quiet" onClick={onClose}>
            Cancel
          </Button>
          <Button variant="primary" type="submit">
            Apply
          </Button>
        </DialogFoot>
      </form>
    </Dialog>
  );
}
