import { ArrowDown, ArrowUp, Plus, Trash2 } from "lucide-react";
import { type ReactNode, useRef, useState } from "react";
import { Button, IconButton } from "../ui/Button";
import { TextArea, TextField } from "../ui/Field";
import css from "./panel.module.css";
import { moved, type PhaseDraft, phaseFault } from "./words";

interface Props {
  value: PhaseDraft[];
  onChange: (value: PhaseDraft[]) => void;
  /** What applies if the list is empty. */
  otherwise: string;
}

/** The phases of a panel or an advisor: what an advisor is told to do, up to which of its turns. */
export function PhasesFields({ value, onChange, otherwise }: Props): ReactNode {
  const [said, setSaid] = useState("");
  const list = useRef<HTMLOListElement>(null);
  const fault = phaseFault(value);
  const change = (at: number, part: Partial<PhaseDraft>): void => onChange(value.map((each, index) => (index === at ? { ...each, ...part } : each)));
  const add = (): void => {
    onChange([...value, { key: 1 + Math.max(0, ...value.map((each) => each.key)), name: "", until: "", instructions: "" }]);
    // The field that the person fills in next.
    requestAnimationFrame(() => list.current?.querySelector<HTMLElement>("li:last-child input")?.focus());
  };
  const move = (at: number, by: number): void => {
    onChange(moved(value, at, by));
    setSaid(`Phase ${at + 1} is phase ${at + by + 1} now.`);
  };
  return (
    <fieldset className={css.phases}>
      <legend>Phases</legend>
      <p className={css.faint}>
        What an advisor is told to do, by the number of its own turns. In the instructions, <code>{"{turn}"}</code> and <code>{"{of}"}</code> are replaced by numbers.
      </p>
      {value.length === 0 && <p className={css.faint}>{otherwise}</p>}
      <ol ref={list} aria-label="Phases">
        {value.map((each, at) => (
          <li key={each.key}>
            <div className={css.phaseHead}>
              <h3>Phase {at + 1}</h3>
              <span className={css.rowActions}>
                <IconButton label={`Move phase ${at + 1} up`} icon={<ArrowUp size={15} />} disabled={at === 0} onClick={() => move(at, -1)} />
                <IconButton label={`Move phase ${at + 1} down`} icon={<ArrowDown size={15} />} disabled={at === value.length - 1} onClick={() => move(at, 1)} />
                <IconButton label={`Remove phase ${at + 1}`} icon={<Trash2 size={15} />} onClick={() => onChange(value.filter((_, index) => index !== at))} />
              </span>
            </div>
            <div className={css.halves}>
              <TextField label={<Labelled word="Name" at={at} />} hint="Shown on the cards, such as “question”." maxLength={60} value={each.name} onChange={(event) => change(at, { name: event.target.value })} />
              <TextField
                label={<Labelled word="Last turn" at={at} />}
                type="number"
                min={1}
                placeholder="No end"
                value={each.until}
                error={fault?.at === at && fault.field === "until" ? fault.text : undefined}
                onChange={(event) => change(at, { until: event.target.value })}
              />
            </div>
            <TextArea
              label={<Labelled word="Instructions" at={at} />}
              rows={4}
              maxLength={8_000}
              value={each.instructions}
              error={fault?.at === at && fault.field === "instructions" ? fault.text : undefined}
              onChange={(event) => change(at, { instructions: event.target.value })}
            />
          </li>
        ))}
      </ol>
      <div className={css.groups}>
        <Button small icon={<Plus size={15} />} disabled={value.length >= 20} onClick={add}>
          Add phase
        </Button>
        {value.length > 0 && (
          <Button small variant="quiet" onClick={() => onChange([])}>
            Remove all phases
          </Button>
        )}
      </div>
      <div role="status" className="visually-hidden">
        {said}
      </div>
    </fieldset>
  );
}

/** A label that is short to see, and says to which phase it belongs to those who hear it. */
function Labelled({ word, at }: { word: string; at: number }): ReactNode {
  return (
    <>
      {word} <span className="visually-hidden">of phase {at + 1}</span>
    </>
  );
}
