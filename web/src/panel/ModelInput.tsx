import { type ReactNode, useId } from "react";
import { useModels } from "../agents/ModelField";
import { TextField } from "../ui/Field";

interface Props {
  label: string;
  hint?: string;
  placeholder?: string;
  value: string;
  onChange: (model: string) => void;
}

/** The name of a model: those that can be had are offered while one types. */
export function ModelInput({ label, hint, placeholder, value, onChange }: Props): ReactNode {
  const id = useId();
  const models = useModels();
  return (
    <>
      <TextField label={label} hint={hint} placeholder={placeholder} list={id} autoComplete="off" spellCheck={false} value={value} onChange={(event) => onChange(event.target.value.trim())} />
      <datalist id={id}>
        {models.data?.models.map((each) => (
          <option key={each.name} value={each.name} />
        ))}
      </datalist>
    </>
  );
}
