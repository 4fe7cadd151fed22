import { type ReactNode, useId } from "react";
import type { get } from "../denizen/api";
import { Field, inputClass } from "../ui/Field";

interface ModelFieldProps {
  label: string;
  hint?: string;
  error?: string;
  value: string;
  placeholder?: string;
  required?: boolean;
  models: Awaited<ReturnType<typeof get<"/api/models">>>["models"];
  onChange: (value: string) => void;
}

/** A model by its name: those that are there are offered, any other can be named. */
export function ModelField({ label, hint, error, models, onChange, ...rest }: ModelFieldProps): ReactNode {
  const list = useId();
  return (
    <Field label={label} hint={hint} error={error}>
      {(props) => (
        <>
          <input {...rest} {...props} className={inputClass} list={list} autoComplete="off" spellCheck={false} onChange={(event) => onChange(event.target.value)} />
          <datalist id={list}>
            {models.map((each) => (
              <option key={each.name} value={each.name} />
            ))}
          </datalist>
        </>
      )}
    </Field>
  );
}
