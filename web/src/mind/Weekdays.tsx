import { type ReactNode, useId } from "react";
import { Button } from "../ui/Button";
import { labelClass } from "../ui/Field";
import { WEEKDAYS } from "./fields";
import css from "./mind.module.css";

/** Days of the week to choose from. */
export function Weekdays({ label, chosen, onToggle }: { label: string; chosen: (day: string) => boolean; onToggle: (day: string) => void }): ReactNode {
  const id = useId();
  return (
    <div className={css.weekdaysField}>
      <span id={id} className={labelClass}>
        {label}
      </span>
      <div role="group" aria-labelledby={id} className={css.weekdays}>
        {WEEKDAYS.map((day) => (
          <Button key={day} small variant={chosen(day) ? "plain" : "quiet"} aria-pressed={chosen(day)} onClick={() => onToggle(day)}>
            {day}
          </Button>
        ))}
      </div>
    </div>
  );
}
