import type { ReactNode } from "react";
import { Select } from "../ui/Field";
import { useReflectionNames } from "./asking";

interface Props {
  label: string;
  hint?: ReactNode;
  /** What holds where none is chosen; without it, one has to be. */
  otherwise?: string;
  value: string;
  onChange: (profile: string) => void;
}

/** One of the quick-start profiles of reflection that there are. */
export function ProfileSelect({ label, hint, otherwise, value, onChange }: Props): ReactNode {
  const names = useReflectionNames();
  return (
    <Select label={label} hint={hint} value={value} onChange={(event) => onChange(event.target.value)}>
      {otherwise !== undefined && <option value="">{otherwise}</option>}
      {including(names.data?.profiles, value).map((each) => (
        <option key={each} value={each}>
          {each}
        </option>
      ))}
    </Select>
  );
}

/** The choices, with the one that is chosen, also before they are known. */
export function including(choices: string[] | undefined, chosen: string): string[] {
  const known = choices ?? [];
  return chosen === "" || known.includes(chosen) ? known : [...known, chosen];
}
