import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useEffect, useMemo, useState } from "react";
import { flushSync } from "react-dom";
import { useLocation } from "wouter";
import { ApiError, get, inWords, type Member, patch, post, remove, type Schemas, type Space } from "../denizen/api";
import { useSpaces } from "../denizen/hooks";
import { useStore } from "../denizen/live";
import { useAhead } from "../ui/ahead";
import { Avatar } from "../ui/Avatar";
import { Button } from "../ui/Button";
import { Dialog, DialogFoot } from "../ui/Dialog";
import { Checkbox, Select, TextArea, TextField } from "../ui/Field";
import { PictureButton } from "../ui/PictureButton";
import { useToast } from "../ui/Toast";
import { useChange, useModels } from "./asking";
import { type FieldSpec, placed, read, type Section, SECTIONS, valuesOf, type Values, WEEKDAYS } from "./fields";
import css from "./mind.module.css";
import { ModelField } from "./ModelField";
import { useMind } from "./watch";
import { Weekdays } from "./Weekdays";

/** What is not saved yet, by agent, and what it was before: it is still there after a look at another screen. */
const unsaved = new Map<string, { before: Values; values: Values }>();

/** Its definition as a form. Only what was changed is sent; what is wrong is said beside its field. */
export function SettingsTab(): ReactNode {
  const { agent } = useMind();
  // A new version is a new form, with what is not saved yet: what someone else has changed is not overwritten unseen.
  return (
    <>
      <section className={css.face} aria-label="Picture">
        <Avatar name={agent.name} id={agent.id} kind="agent" size="large" />
        <PictureButton id={agent.id} />
      </section>
      <Definition key={versionOf(agent)} />
      <Attention />
      <Ending />
    </>
  );
}

function versionOf({ id, version }: { id: string; version: number }): string {
  return `${id} ${version}`;
}

/** The fields that the reader has changed. */
function changesOf({ before, values }: { before: Values; values: Values }): Values {
  return Object.fromEntries(Object.entries(values).filter(([path, value]) => value !== before[path]));
}

/** What to tell a reader whose changes are kept while the agent has a newer version; null if it is the same. */
function changedBySomeone(kept: { before: Values; values: Values }, now: Values): string | null {
  // What is now as the reader wanted it is what they have saved themselves.
  const theirs = Object.keys(now).filter((path) => now[path] !== kept.before[path] && now[path] !== kept.values[path]);
  if (!theirs.length) return null;
  const mine = changesOf(kept);
  const labels = SECTIONS.flatMap((section) => section.fields).filter((field) => theirs.includes(field.path) && field.path in mine);
  const told = "Somebody has changed this agent meanwhile. Your changes are kept and not saved yet.";
  return labels.length ? `${told} You both changed ${labels.map((field) => field.label).join(", ")}: saving replaces theirs.` : told;
}

function Definition(): ReactNode {
  const { agent } = useMind();
  const say = useToast();
  const before = useMemo(() => valuesOf(agent.name, agent.definition ?? {}), [agent]);
  const kept = useState(() => unsaved.get(agent.id))[0];
  const [values, setValues] = useState(() => (kept ? { ...before, ...changesOf(kept) } : before));
  const [errors, setErrors] = useState<Record<string, string>>({});
  const [rest, setRest] = useState<string | null>(() => (kept ? changedBySomeone(kept, before) : null));
  const client = useQueryClient();
  const save = useChange(agent.id, async (changes: Record<string, unknown>) => {
    await patch("/api/agents/{agent_id}", { path: { agent_id: agent.id }, body: { ...changes, version: agent.version } as never });
    unsaved.delete(agent.id); // Before the new version comes, in which the server may have written the same in another way.
  });
  const dirty = Object.keys(values).some((path) => values[path] !== before[path]);
  useEffect(() => {
    if (dirty) unsaved.set(agent.id, { before, values });
    else unsaved.delete(agent.id);
  }, [dirty, agent.id, before, values]);

  const refuse = (found: Record<string, string>, other: string | null): void => {
    flushSync(() => {
      setErrors(found);
      setRest(other);
    });
    document.querySelector<HTMLElement>('form [aria-invalid="true"]')?.focus();
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const told = read(before, values);
    if (Object.keys(told.errors).length) return refuse(told.errors, null);
    refuse({}, null);
    save.mutate(told.changes, {
      onSuccess: () => say("Saved. Takes effect with its next cycle."),
      onError: (error) => {
        if (!(error instanceof ApiError)) return refuse({}, inWords(error));
        // The newer version becomes a new form, which says what somebody has changed.
        if (error.code === "changed_meanwhile") return void client.invalidateQueries({ queryKey: ["agents", agent.id] });
        const { errors: found, rest: other } = placed(error);
        refuse(found, other);
      },
    });
  };
  return (
    <form className={css.settings} onSubmit={submit} noValidate>
      {SECTIONS.map((section) => (
        <SectionFields key={section.id} section={section} values={values} errors={errors} onChange={(path, value) => setValues((known) => ({ ...known, [path]: value }))} />
      ))}
      {rest && (
        <p className={css.alert} role="alert">
          {rest}
        </p>
      )}
      <div className={css.saveBar} data-dirty={dirty || undefined}>
        <span className={css.aside}>{Object.keys(errors).length ? "Fix the marked fields." : dirty ? "Not saved yet." : "All changes saved."}</span>
        <Button
          variant="quiet"
          disabled={!dirty}
          onClick={() => {
            setValues(before);
            setRest(null);
          }}
        >
          Discard
        </Button>
        <Button type="submit" variant="primary" disabled={!dirty} busy={save.isPending}>
          Save
        </Button>
      </div>
    </form>
  );
}

interface SectionFieldsProps {
  section: Section;
  values: Values;
  errors: Record<string, string>;
  onChange: (path: string, value: string | boolean) => void;
}

function SectionFields({ section, values, errors, onChange }: SectionFieldsProps): ReactNode {
  const on = !section.optional || values[section.optional.path] === true;
  return (
    <fieldset className={css.fieldset}>
      <legend className={css.legendTitle}>{section.title}</legend>
      <p className={css.aside}>{section.about}</p>
      {section.optional && (
        <Checkbox label={section.optional.label} hint={section.optional.hint} checked={on} onChange={(event) => onChange(section.optional!.path, event.target.checked)} />
      )}
      {on && (
        <div className={css.fieldGrid}>
          {section.fields.map((field) => (
            <div key={field.path} className={field.wide || field.kind === "long" || field.kind === "json" || field.kind === "weekdays" ? css.wideField : undefined}>
              <Input field={field} value={values[field.path] ?? ""} error={errors[field.path]} onChange={(value) => onChange(field.path, value)} />
            </div>
          ))}
        </div>
      )}
    </fieldset>
  );
}

function Input({ field, value, error, onChange }: { field: FieldSpec; value: string | boolean; error?: string; onChange: (value: string | boolean) => void }): ReactNode {
  const { label, hint, normal } = field;
  const models = useModels();
  if (field.kind === "flag") return <Checkbox label={label} hint={hint} checked={value === true} onChange={(event) => onChange(event.target.checked)} />;
  const text = String(value);
  const common = { label, hint, error, value: text, placeholder: normal };
  switch (field.kind) {
    case "choice":
      return (
        <Select label={label} hint={hint} error={error} value={text} onChange={(event) => onChange(event.target.value)}>
          {field.choices!.map(([each, words]) => (
            <option key={each} value={each}>
              {words}
            </option>
          ))}
        </Select>
      );
    case "model":
      return <ModelField {...common} models={models.data?.models ?? []} onChange={onChange} />;
    case "long":
      return <TextArea {...common} rows={field.path === "instructions" ? 8 : 2} onChange={(event) => onChange(event.target.value)} />;
    case "json":
      return <TextArea {...common} className={css.mono} rows={text ? Math.min(text.split("\n").length + 1, 14) : 2} spellCheck={false} onChange={(event) => onChange(event.target.value)} />;
    case "weekdays":
      return <Weekdays label={label} chosen={(day) => daysIn(text).includes(day)} onToggle={(day) => onChange(WEEKDAYS.filter((each) => daysIn(text).includes(each) !== (each === day)).join(", "))} />;
    default:
      return <TextField {...common} type={field.kind === "time" ? "time" : "text"} inputMode={field.kind === "integer" ? "numeric" : field.kind === "number" ? "decimal" : undefined} autoComplete="off" onChange={(event) => onChange(event.target.value)} />;
  }
}

function daysIn(text: string): string[] {
  return text.split(",").map((each) => each.trim());
}

const ATTENTION: [Schemas["MemberOut"]["attention"], string][] = [
  ["all", "All messages"],
  ["mentions", "Mentions only"],
  ["none", "Nothing"],
];

/** What of each space reaches its inbox. */
function Attention(): ReactNode {
  const { agent } = useMind();
  const spaces = useSpaces() ?? [];
  const shared = spaces.flatMap(({ info }) => info.members.filter((each) => each.id === agent.id).map((member) => ({ info, member })));
  return (
    <section className={css.fieldset} aria-label="Attention">
      <h2 className={css.legendTitle}>Attention</h2>
      <p className={css.aside}>Which messages reach its inbox, in the spaces you share with it.</p>
      {shared.length === 0 ? (
        <p className={css.nothing}>You share no space with it.</p>
      ) : (
        <div className={css.fieldGrid}>
          {shared.map(({ info, member }) => (
            <InSpace key={info.id} space={info} member={member} />
          ))}
        </div>
      )}
    </section>
  );
}

function InSpace({ space, member }: { space: Space; member: Member }): ReactNode {
  const say = useToast();
  const store = useStore();
  const [attention, ahead] = useAhead(member.attention);
  const attend = async (wanted: Member["attention"]): Promise<void> => {
    const path = { space_id: space.id };
    try {
      await patch("/api/spaces/{space_id}/members/{entity_id}", { path: { ...path, entity_id: member.id }, body: { attention: wanted } });
      store.dispatch({ type: "space", space: await get("/api/spaces/{space_id}", { path }) });
      say(`Saved for ${space.name}.`);
    } catch (error) {
      say(inWords(error));
    }
  };
  const choose = (wanted: Member["attention"]): void => ahead(wanted, attend(wanted));
  return (
    <Select label={space.name} value={attention} onChange={(event) => choose(event.target.value as typeof attention)}>
      {ATTENTION.map(([value, words]) => (
        <option key={value} value={value}>
          {words}
        </option>
      ))}
    </Select>
  );
}

/** Where it is put to rest, woken, and taken leave of. */
function Ending(): ReactNode {
  const { agent, watched } = useMind();
  const say = useToast();
  const [, go] = useLocation();
  const client = useQueryClient();
  const [asked, setAsked] = useState<"suspend" | "delete" | null>(null);
  const path = { agent_id: agent.id };
  const suspended = (watched.status ?? agent.status) === "suspended";
  const suspend = useChange(agent.id, () => post("/api/agents/{agent_id}/suspend", { path }));
  const resume = useChange(agent.id, () => post("/api/agents/{agent_id}/resume", { path }));
  const erase = useChange(agent.id, async () => {
    await remove("/api/agents/{agent_id}", { path });
    // It cannot be asked for any more.
    client.removeQueries({ queryKey: ["agents", agent.id] });
    go("/agents");
  });
  const failed = (error: unknown): void => say(inWords(error));
  const close = (): void => setAsked(null);
  return (
    <section className={css.fieldset} aria-label="Suspend or delete">
      <h2 className={css.legendTitle}>Suspend or delete</h2>
      <p className={css.aside}>A suspended agent does nothing until it is resumed. New messages wait in its inbox.</p>
      <div className={css.buttons}>
        {suspended ? (
          <Button busy={resume.isPending} onClick={() => resume.mutate(undefined, { onError: failed, onSuccess: () => say(`${agent.name} resumed.`) })}>
            Resume {agent.name}
          </Button>
        ) : (
          <Button onClick={() => setAsked("suspend")}>Suspend {agent.name}</Button>
        )}
        <Button variant="danger" onClick={() => setAsked("delete")}>
          Delete {agent.name}
        </Button>
      </div>
      {asked === "suspend" && (
        <Dialog title={`Suspend ${agent.name}?`} onClose={close}>
          <p>It stops at its current step and continues from there when you resume it.</p>
          <DialogFoot onCancel={close}>
            <Button variant="primary" busy={suspend.isPending} onClick={() => suspend.mutate(undefined, { onError: failed, onSettled: close })}>
              Suspend
            </Button>
          </DialogFoot>
        </Dialog>
      )}
      {asked === "delete" && (
        <Dialog title={`Delete ${agent.name}?`} onClose={close}>
          <p>It never runs again. Its messages stay; its handle @{agent.handle} stays reserved.</p>
          <DialogFoot onCancel={close}>
            <Button variant="danger" busy={erase.isPending} onClick={() => erase.mutate(undefined, { onError: failed })}>
              Delete
            </Button>
          </DialogFoot>
        </Dialog>
      )}
    </section>
  );
}
