import type { ReactNode } from "react";
import type { Schemas } from "../denizen/api";
import { Checkbox, Select, TextField } from "../ui/Field";

type Told = Schemas["RetentionOut"];

/** For how many days messages can be kept, if not for ever. */
export const MOST_DAYS = 36_500;

/** What was chosen: as the organization says, for ever, or a number of days. */
export interface Chosen {
  how: "default" | "ever" | "days";
  days: string;
  archive: boolean;
}

/** How long messages are kept, as the form begins. */
export function chosenFrom(told: Told): Chosen {
  const how = !told.own ? "default" : told.days === 0 ? "ever" : "days";
  return { how, days: told.days === 0 ? "365" : String(told.days), archive: told.archive };
}

/** The same as the server wants it; null if the days are no number. */
export function wantedOf({ how, days, archive }: Chosen): Schemas["RetentionSet"] | null {
  if (how === "default") return { days: null, archive: false };
  if (how === "ever") return { days: 0, archive: false };
  const number = Number(days);
  return Number.isInteger(number) && number >= 1 && number <= MOST_DAYS ? { days: number, archive } : null;
}

/** For how long the messages of a space are kept, for those who manage it. */
export function Keeping({ told, chosen, onChoose }: { told: Told; chosen: Chosen; onChoose: (next: Chosen) => void }): ReactNode {
  const usual = told.default.days === 0 ? "for ever" : `for ${told.default.days} days`;
  return (
    <>
      <Select label="Keep messages" value={chosen.how} onChange={(event) => onChoose({ ...chosen, how: event.target.value as Chosen["how"] })}>
        <option value="default">As the organization: {usual}</option>
        <option value="ever">For ever</option>
        <option value="days">For a number of days</option>
      </Select>
      {chosen.how === "days" && (
        <>
          <TextField
            label="Days"
            type="number"
            min={1}
            max={MOST_DAYS}
            value={chosen.days}
            hint="Older messages are removed for good, once a day, with what agents remember of them."
            error={wantedOf(chosen) === null ? `Type a whole number of days, from 1 to ${MOST_DAYS}.` : null}
            onChange={(event) => onChoose({ ...chosen, days: event.target.value })}
          />
          <Checkbox
            label="Archive first"
            hint="They are written to a file on the server before they are removed."
            checked={chosen.archive}
            onChange={(event) => onChoose({ ...chosen, archive: event.target.checked })}
          />
        </>
      )}
    </>
  );
}
