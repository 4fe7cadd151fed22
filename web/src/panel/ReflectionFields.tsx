import type { ReactNode } from "react";
import type { Schemas } from "../denizen/api";
import { ProfileSelect } from "../reflection/ProfileSelect";
import { ModelInput } from "./ModelInput";
import css from "./panel.module.css";
import { alsoSetWords } from "./words";

type Reflection = Schemas["ReflectionSettings"];

interface Props {
  hint: string;
  /** What holds where nothing is set; without it, something is. */
  otherwise?: string;
  before: Reflection | null;
  value: Reflection | null;
  onChange: (value: Reflection | null) => void;
}

/** How what people feel is thought over after a turn, if it is, and by which model. */
export function ReflectionFields({ hint, otherwise, before, value, onChange }: Props): ReactNode {
  const also = alsoSetWords(value);
  const choose = (profile: string): void => onChange(profile === "" ? null : { metaprompts: [], ...(value ?? before), profile });
  return (
    <>
      <div className={css.halves}>
        <ProfileSelect label="Reflection" hint={hint} otherwise={otherwise} value={value?.profile ?? ""} onChange={choose} />
        {value && <ModelInput label="Reflection model" placeholder="Same as the checking model" value={value.model ?? ""} onChange={(model) => onChange({ ...value, model: model || null })} />}
      </div>
      {also && <p className={css.faint}>{also}</p>}
    </>
  );
}
