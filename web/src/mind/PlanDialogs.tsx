/** Where goals, notes and plans are written. The agent hears of it with its next cycle. */
import { type FormEvent, type ReactNode, useState } from "react";
import { inWords, post, put, type Schemas } from "../denizen/api";
import { Button } from "../ui/Button";
import { Dialog, DialogFoot } from "../ui/Dialog";
import { Select, TextArea, TextField } from "../ui/Field";
import { useChange } from "./asking";
import { WEEKDAYS } from "./fields";
import css from "./mind.module.css";
import { cronFor, cronOf, EVERY_DAY, HERE, localInput, type Weekly, weeklyOf } from "./schedules";
import { useMind } from "./watch";
import { Weekdays } from "./Weekdays";

interface FormProps {
  title: string;
  /** What is missing in it. */
  unready?: string | null;
  change: { mutate: (given: void, then: { onSuccess: () => void }) => void; isPending: boolean; error: Error | null };
  onClose: () => void;
  children: ReactNode;
}

function Form({ title, change, unready, onClose, children }: FormProps): ReactNode {
  const fault = unready ?? (change.error && inWords(change.error));
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!unready) change.mutate(undefined, { onSuccess: onClose });
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form className={css.form} onSubmit={submit}>
        {children}
        {fault && (
          <p className={css.alert} role="alert">
            {fault}
          </p>
        )}
        <DialogFoot onCancel={onClose}>
          <Button type="submit" variant="primary" busy={change.isPending}>
            Save
          </Button>
        </DialogFoot>
      </form>
    </Dialog>
  );
}

export function GoalDialog({ goal, onClose }: { goal: Schemas["GoalOut"] | null; onClose: () => void }): ReactNode {
  const { agent } = useMind();
  const [text, setText] = useState(goal?.text ?? "");
  const [status, setStatus] = useState<Schemas["GoalOut"]["status"]>(goal?.status ?? "active");
  const [priority, setPriority] = useState<Schemas["GoalOut"]["priority"]>(goal?.priority ?? "normal");
  const body = { text, status, priority };
  const change = useChange(agent.id, () =>
    goal === null
      ? post("/api/agents/{agent_id}/goals", { path: { agent_id: agent.id }, body })
      : put("/api/agents/{agent_id}/goals/{number}", { path: { agent_id: agent.id, number: goal.number }, body }),
  );
  return (
    <Form title={goal ? "Edit goal" : "New goal"} change={change} onClose={onClose}>
      <TextArea label="Goal" rows={3} required autoFocus value={text} onChange={(event) => setText(event.target.value)} />
      <Select label="Status" value={status} onChange={(event) => setStatus(event.target.value as typeof status)}>
        <option value="active">Active</option>
        <option value="long-term">Long-term</option>
        <option value="paused">Paused</option>
        <option value="done">Done</option>
      </Select>
      <Select label="Priority" value={priority} onChange={(event) => setPriority(event.target.value as typeof priority)}>
        <option value="high">High</option>
        <option value="normal">Normal</option>
        <option value="low">Low</option>
      </Select>
    </Form>
  );
}

export function NoteDialog({ note, onClose }: { note: Schemas["NoteOut"] | null; onClose: () => void }): ReactNode {
  const { agent } = useMind();
  const [key, setKey] = useState(note?.key ?? "");
  const [text, setText] = useState(note?.text ?? "");
  const change = useChange(agent.id, () => put("/api/agents/{agent_id}/notes/{key}", { path: { agent_id: agent.id, key: key.trim() }, body: { text } }));
  return (
    <Form title={note ? "Edit note" : "New note"} change={change} onClose={onClose}>
      <TextField label="Key" required autoFocus={note === null} readOnly={note !== null} value={key} onChange={(event) => setKey(event.target.value)} hint={note ? undefined : "One or two words. Replaces a note with the same key."} />
      <TextArea label="Note" rows={4} required autoFocus={note !== null} value={text} onChange={(event) => setText(event.target.value)} />
    </Form>
  );
}

type Way = "weekly" | "cron" | "at" | "after";

export function PlanDialog({ plan, onClose }: { plan: Schemas["PlanOut"] | null; onClose: () => void }): ReactNode {
  const { agent } = useMind();
  const known = plan && cronOf(plan.schedule);
  const [name, setName] = useState(plan?.name ?? "");
  const [instruction, setInstruction] = useState(plan?.instruction ?? "");
  const [weekly, setWeekly] = useState<Weekly>((known && weeklyOf(known.cron)) ?? { days: [0, 1, 2, 3, 4], time: "09:00" });
  const [way, setWay] = useState<Way>(plan && !known ? "at" : known && !weeklyOf(known.cron) ? "cron" : "weekly");
  const [cron, setCron] = useState(known?.cron ?? cronFor(weekly));
  const [zone, setZone] = useState(known?.zone ?? HERE);
  const [at, setAt] = useState(plan ? localInput(plan.next_run) : "");
  const [after, setAfter] = useState("2 hours");
  const repeats = way === "weekly" || way === "cron";
  const when = repeats ? { cron: way === "cron" ? cron : cronFor(weekly), zone: zone.trim() || null } : way === "at" ? { at: at && new Date(at).toISOString() } : { after };
  const toggle = (day: number): void =>
    setWeekly({ ...weekly, days: EVERY_DAY.filter((each) => weekly.days.includes(each) !== (each === day)) });
  const change = useChange(agent.id, () => put("/api/agents/{agent_id}/plans/{name}", { path: { agent_id: agent.id, name: name.trim() }, body: { instruction, ...when } }));
  return (
    <Form title={plan ? `Edit ${plan.name}` : "New plan"} change={change} unready={way === "weekly" && weekly.days.length === 0 ? "Choose at least one day." : null} onClose={onClose}>
      <TextField label="Name" required autoFocus={plan === null} readOnly={plan !== null} value={name} onChange={(event) => setName(event.target.value)} hint={plan ? undefined : "Replaces a plan with the same name."} />
      <TextArea label="Message to the agent" rows={3} required value={instruction} onChange={(event) => setInstruction(event.target.value)} />
      <Select
        label="When"
        value={way}
        onChange={(event) => {
          setWay(event.target.value as Way);
          // What was chosen is a beginning for what only cron can say.
          if (way === "weekly") setCron(cronFor(weekly));
        }}
      >
        <option value="weekly">Every week</option>
        <option value="at">Once, at a set time</option>
        <option value="after">Once, after a delay</option>
        <option value="cron">By a cron expression</option>
      </Select>
      {way === "weekly" && (
        <>
          <Weekdays label="On" chosen={(day) => weekly.days.includes(WEEKDAYS.indexOf(day))} onToggle={(day) => toggle(WEEKDAYS.indexOf(day))} />
          <TextField label="At" type="time" required value={weekly.time} onChange={(event) => setWeekly({ ...weekly, time: event.target.value })} />
        </>
      )}
      {way === "cron" && (
        <TextField label="Cron" required value={cron} onChange={(event) => setCron(event.target.value)} hint="Minute, hour, day of month, month, day of week." />
      )}
      {repeats && <TextField label="Time zone" value={zone} onChange={(event) => setZone(event.target.value)} hint="Empty: the agent's time zone." />}
      {way === "at" && <TextField label={`Time (${HERE})`} type="datetime-local" required value={at} onChange={(event) => setAt(event.target.value)} />}
      {way === "after" && <TextField label="After" required value={after} onChange={(event) => setAfter(event.target.value)} hint="For example 20 minutes, 2 hours, 3 days." />}
    </Form>
  );
}
