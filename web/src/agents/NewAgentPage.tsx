import { useQuery } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useMemo, useState } from "react";
import { flushSync } from "react-dom";
import { Link, useLocation } from "wouter";
import { ApiError, get, inWords, post, put, type Schemas } from "../denizen/api";
import { useAgentsChanged, useIsAdmin, useMe, useSpaces } from "../denizen/hooks";
import { useStore } from "../denizen/live";
import { useRequestKey } from "../denizen/requestKey";
import { NotForYou } from "../shell/NotForYou";
import { Page } from "../shell/Page";
import { isDirect } from "../shell/Sidebar";
import { Avatar } from "../ui/Avatar";
import { Button } from "../ui/Button";
import { Checkbox, TextArea, TextField } from "../ui/Field";
import { Skeleton } from "../ui/States";
import { useToast } from "../ui/Toast";
import { useForget, useKept } from "../ui/useKept";
import css from "./agents.module.css";
import { handleFault, handleFrom } from "./handles";
import { ModelField } from "./ModelField";
import { type Template, TEMPLATES } from "./templates";

/** Under this name what was filled in is kept. */
const FORM = "new agent";

type Faults = Partial<Record<"name" | "handle" | "purpose" | "instructions" | "model" | "tools" | "spaces" | "zone" | "other", string>>;

export default function NewAgentPage(): ReactNode {
  const admin = useIsAdmin();
  return <Page title="New agent">{admin ? <NewAgent /> : <NotForYou what="Only admins can create agents." />}</Page>;
}

/** From a template to the first word with it. */
function NewAgent(): ReactNode {
  const [template, setTemplate] = useKept<Template>(FORM, "template", TEMPLATES[0]!);
  const [name, setName] = useKept(FORM, "name", template.name);
  const [handle, setHandle] = useKept<string | null>(FORM, "handle", null);
  const [purpose, setPurpose] = useKept(FORM, "purpose", template.purpose);
  const [instructions, setInstructions] = useKept(FORM, "instructions", template.instructions);
  const [model, setModel] = useKept(FORM, "model", "default");
  const [zone, setZone] = useKept(FORM, "zone", Intl.DateTimeFormat().resolvedOptions().timeZone);
  const [tools, setTools] = useKept<ReadonlySet<string>>(FORM, "tools", new Set());
  const [spaces, setSpaces] = useKept<ReadonlySet<string>>(FORM, "spaces", new Set());
  const forget = useForget(FORM);
  const [faults, setFaults] = useState<Faults>({});
  const create = useCreate(setFaults);
  const chosen = handle ?? handleFrom(name);

  const choose = (next: Template): void => {
    // What was written by hand stays; what came from a template goes with it.
    if (name === template.name) setName(next.name);
    if (purpose === template.purpose) setPurpose(next.purpose);
    if (instructions === template.instructions) setInstructions(next.instructions);
    setTemplate(next);
    setFaults({});
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const found: Faults = {};
    if (!name.trim()) found.name = "Enter a name.";
    else if (handle !== null || !chosen) found.handle = handleFault(chosen) ?? undefined;
    if (!model.trim()) found.model = "Enter a model, such as provider:name.";
    if (found.handle) setHandle(chosen);
    if (Object.values(found).some(Boolean)) return showFaults(setFaults, found);
    setFaults({});
    void create.run({
      ...template.definition,
      name: name.trim(),
      handle: chosen,
      purpose: purpose.trim(),
      instructions,
      model: model.trim(),
      zone,
      tools: [...tools],
      spaces: [...spaces],
    } as Schemas["CreateAgent"]);
  };
  return (
    <form onSubmit={submit} className={css.form} noValidate>
      <TemplatePicker chosen={template} onChoose={choose} />
      <div className={css.identity}>
        <Avatar name={name || "?"} id={chosen || "new"} kind="agent" size="large" />
        <div className={css.identityFields}>
          <TextField
            label="Name"
            required
            maxLength={120}
            value={name}
            autoComplete="off"
            onChange={(event) => setName(event.target.value)}
            error={faults.name}
            hint={
              handle === null && (
                <>
                  Mentioned as <strong>@{chosen || "…"}</strong>{" "}
                  <button type="button" className={css.textButton} onClick={() => setHandle(chosen)}>
                    Change handle
                  </button>
                </>
              )
            }
          />
          {handle !== null && (
            <TextField
              label="Handle"
              value={handle}
              maxLength={41}
              autoComplete="off"
              spellCheck={false}
              onChange={(event) => setHandle(event.target.value.replace(/^@/, ""))}
              error={faults.handle}
              hint={<>Mentioned as @{handle || "…"}. The handle cannot be changed later.</>}
            />
          )}
        </div>
      </div>
      <TextField
        label="Purpose"
        maxLength={200}
        value={purpose}
        autoComplete="off"
        onChange={(event) => setPurpose(event.target.value)}
        error={faults.purpose}
        hint="What it is for, in a line. People see it in lists; the agent does not read it."
      />
      <TextArea
        label="Role"
        rows={9}
        value={instructions}
        onChange={(event) => setInstructions(event.target.value)}
        error={faults.instructions}
        hint="Who it is, what it does, how it speaks. The agent reads this first."
      />
      <ModelField value={model} onChange={setModel} error={faults.model} />
      <ToolChoice chosen={tools} onChange={setTools} error={faults.tools} />
      <SpaceChoice chosen={spaces} onChange={setSpaces} error={faults.spaces} />
      <details className={css.more}>
        <summary>More</summary>
        <ZoneField value={zone} onChange={setZone} error={faults.zone} />
      </details>
      {faults.other && (
        <p role="alert" className={css.fault}>
          {faults.other}
        </p>
      )}
      <div className={css.foot}>
        <Link href="/agents" className={css.cancel} onClick={forget}>
          Cancel
        </Link>
        <Button type="submit" variant="primary" busy={create.busy}>
          Make {name.trim() || "the agent"}
        </Button>
      </div>
    </form>
  );
}

function TemplatePicker({ chosen, onChoose }: { chosen: Template; onChoose: (template: Template) => void }): ReactNode {
  return (
    <fieldset>
      <legend className={css.legend}>Start from</legend>
      <div className={css.templates}>
        {TEMPLATES.map((each) => (
          <label key={each.id} className={css.template} data-chosen={each.id === chosen.id}>
            <input type="radio" name="template" className="visually-hidden" checked={each.id === chosen.id} onChange={() => onChoose(each)} />
            <span className={css.templateTitle}>{each.title}</span>
            <span className={css.templateAbout}>{each.about}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

interface ChoiceProps {
  chosen: ReadonlySet<string>;
  onChange: (chosen: ReadonlySet<string>) => void;
  error?: string;
}

function ToolChoice({ chosen, onChange, error }: ChoiceProps): ReactNode {
  const tools = useQuery({ queryKey: ["tools"], queryFn: ({ signal }) => get("/api/tools", { signal }), staleTime: 60_000 });
  return (
    <fieldset>
      <legend className={css.legend}>Tools</legend>
      <p className={css.hint}>Every agent can speak, read, recall, take notes, make plans and set timers.</p>
      {tools.isPending && <Skeleton lines={2} />}
      {tools.error && <p className={css.hint}>The tools cannot be listed now. You can add them later. {inWords(tools.error)}</p>}
      {tools.data && tools.data.tools.length > 0 && (
        <div className={css.checks}>
          {tools.data.tools.map((each) => (
            <Checkbox key={each.name} label={<code>{each.name}</code>} hint={each.description.split(/(?<=\.)\s/)[0]} checked={chosen.has(each.name)} onChange={() => onChange(toggled(chosen, each.name))} />
          ))}
        </div>
      )}
      {tools.data?.tools.length === 0 && <p className={css.hint}>This server has no other tools. Add HTTP requests, questions and MCP servers in the agent's settings.</p>}
      {error && (
        <p role="alert" className={css.fault}>
          {error}
        </p>
      )}
    </fieldset>
  );
}

function SpaceChoice({ chosen, onChange, error }: ChoiceProps): ReactNode {
  const me = useMe();
  const spaces = useSpaces();
  const shared = useMemo(() => spaces?.filter((each) => !isDirect(each, me.id)), [spaces, me.id]);
  return (
    <fieldset>
      <legend className={css.legend}>Spaces it joins</legend>
      <p className={css.hint}>In addition to your private conversation with it.</p>
      {shared === undefined ? (
        <Skeleton lines={1} />
      ) : (
        <div className={css.chips}>
          {shared.map(({ info }) => (
            <label key={info.id} className={css.chip}>
              <input type="checkbox" className="visually-hidden" checked={chosen.has(info.id)} onChange={() => onChange(toggled(chosen, info.id))} />
              <span># {info.name}</span>
            </label>
          ))}
        </div>
      )}
      {error && (
        <p role="alert" className={css.fault}>
          {error}
        </p>
      )}
    </fieldset>
  );
}

function ZoneField({ value, onChange, error }: { value: string; onChange: (zone: string) => void; error?: string }): ReactNode {
  const zones = useMemo(() => Intl.supportedValuesOf("timeZone"), []);
  return (
    <>
      <TextField label="Time zone" list="zones" value={value} onChange={(event) => onChange(event.target.value)} error={error} hint="Used for times such as “nine o'clock”." />
      <datalist id="zones">
        {zones.map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
    </>
  );
}

function useCreate(tell: (faults: Faults) => void): { busy: boolean; run: (wanted: Schemas["CreateAgent"]) => Promise<void> } {
  const [busy, setBusy] = useState(false);
  const forget = useForget(FORM);
  const key = useRequestKey();
  const changed = useAgentsChanged();
  const store = useStore();
  const say = useToast();
  const [, go] = useLocation();
  const run = async (wanted: Schemas["CreateAgent"]): Promise<void> => {
    setBusy(true);
    try {
      const agent = await post("/api/agents", { body: wanted, key: key.for(wanted) });
      const space = await put("/api/agents/{agent_id}/space", { path: { agent_id: agent.id } });
      store.dispatch({ type: "space", space });
      void changed();
      forget();
      say(`${agent.name} created. Say hello.`);
      go(`/s/${space.id}`);
    } catch (error) {
      setBusy(false);
      showFaults(tell, faultsOf(error));
    }
  };
  return { busy, run };
}

/** What the server says is wrong, each beside its field. */
export function faultsOf(error: unknown): Faults {
  if (!(error instanceof ApiError)) return { other: inWords(error) };
  if (error.code === "handle_taken") return { name: "This handle is taken. Choose another name or handle.", handle: error.detail };
  const faults: Faults = {};
  const put = (field: string, text: string): void => {
    const known = ["name", "handle", "instructions", "model", "tools", "spaces", "zone"].find((each) => field === each || field.startsWith(`${each}.`));
    faults[(known ?? "other") as keyof Faults] = known ? sentence(text) : error.detail;
  };
  for (const each of error.errors) put(each.field, each.message);
  const told = /^(\w+): (.*)$/s.exec(error.detail);
  if (error.errors.length === 0) put(told?.[1] ?? "", told?.[2] ?? error.detail);
  return faults;
}

function showFaults(tell: (faults: Faults) => void, faults: Faults): void {
  flushSync(() => tell(faults));
  document.querySelector<HTMLElement>("main [aria-invalid=true]")?.focus();
}

function sentence(text: string): string {
  const whole = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(whole) ? whole : `${whole}.`;
}

function toggled(chosen: ReadonlySet<string>, id: string): ReadonlySet<string> {
  const next = new Set(chosen);
  if (!next.delete(id)) next.add(id);
  return next;
}
