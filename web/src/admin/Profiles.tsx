import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Braces, FlaskConical, Pencil, Plus, RotateCcw, Trash2 } from "lucide-react";
import { type FormEvent, type ReactNode, useState } from "react";
import { get, post, put, remove, type Schemas } from "../denizen/api";
import { useMe } from "../denizen/hooks";
import { Badge } from "../ui/Badge";
import { Button, IconButton } from "../ui/Button";
import { Confirm, Fault } from "../ui/Confirm";
import { Checkbox, Select, TextArea, TextField } from "../ui/Field";
import { Loaded } from "../ui/States";
import { useToast } from "../ui/Toast";
import { useAct } from "../ui/useAct";
import { useKept } from "../ui/useKept";
import css from "./admin.module.css";
import { Section } from "./parts";
import { conditionWords, DEFAULT_REVIEW_TURNS, nameOf, type Preset, type PresetFile, presetText, type Routing, rulesInOrder, withoutPreset } from "./presets";
import { FileForm, PresetForm, RuleForm } from "./ProfileForms";

type Told = Schemas["PresetsOut"];

const KEY = ["profiles", "presets"];
const SOURCES: Record<Told["source"], string> = { organization: "Changed by your organization", server: "From the server's file", shipped: "Built in" };

/** The prompt profiles of the organization: tried, changed and reset. */
export default function Profiles(): ReactNode {
  const told = useQuery({ queryKey: KEY, queryFn: ({ signal }) => get("/api/profiles/presets", { signal }) });
  return (
    <Loaded query={told} lines={10}>
      {(presets) => <Editor told={presets} />}
    </Loaded>
  );
}

type Open = { preset: Preset | null } | { rule: number | null } | "file" | "reset";

function Editor({ told }: { told: Told }): ReactNode {
  const me = useMe();
  const client = useQueryClient();
  const say = useToast();
  const act = useAct();
  const saved = told.document as unknown as PresetFile;
  const [draft, setFile] = useKept<PresetFile | null>("profiles", "file", null);
  const [open, setOpen] = useState<Open | null>(null);
  const owner = me.role === "owner";
  const changed = draft !== null;
  const file = draft ?? saved;
  const close = (): void => setOpen(null);
  const keep = async (now: Told): Promise<void> => {
    client.setQueryData(KEY, now);
    setFile(null);
    await client.invalidateQueries({ queryKey: ["profiles"], predicate: (query) => query.queryKey[1] !== "presets" });
  };
  const save = (): void =>
    void act.run(async () => {
      await keep(await put("/api/profiles/presets", { body: { document: file as unknown as Told["document"] } }));
      say("Saved.");
    });
  return (
    <>
      <Section
        title="Prompt profiles"
        about="Small instructions that are added to an agent's own for a conversation. Rules choose a preset by the message. Changes apply from the next turn of each conversation on."
        action={<Badge tone={told.source === "organization" ? "accent" : "plain"}>{SOURCES[told.source]}</Badge>}
      >
        {told.warnings.length > 0 && (
          <ul className={css.alerts} aria-label="Warnings">
            {told.warnings.map((each) => (
              <li key={each}>{each}</li>
            ))}
          </ul>
        )}
        <div className={css.buttons}>
          <Button icon={<Braces size={16} />} onClick={() => setOpen("file")}>
            Show as a file
          </Button>
          {owner && told.source === "organization" && (
            <Button icon={<RotateCcw size={16} />} onClick={() => setOpen("reset")}>
              Reset
            </Button>
          )}
        </div>
        {!owner && <p className={css.faint}>You are here as {me.role}. You can try changes here; ask an owner to save them.</p>}
      </Section>
      <Try file={changed ? file : null} />
      <Presets file={file} addons={told.addons} onOpen={setOpen} onChange={setFile} />
      <Rules file={file} onOpen={setOpen} onChange={setFile} />
      <Defaults file={file} onChange={setFile} />
      {changed && (
        <div className={css.saveBar}>
          <span role="status" className={css.faint}>
            Unsaved changes.
          </span>
          <Button
            variant="quiet"
            onClick={() => {
              setFile(null);
              act.clear();
            }}
          >
            Discard
          </Button>
          {owner && (
            <Button variant="primary" busy={act.busy} onClick={save}>
              Save
            </Button>
          )}
          <Fault error={act.error} />
        </div>
      )}
      {typeof open === "object" && open && "preset" in open && <PresetForm file={file} addons={told.addons} preset={open.preset} onChange={setFile} onClose={close} />}
      {typeof open === "object" && open && "rule" in open && <RuleForm file={file} at={open.rule} onChange={setFile} onClose={close} />}
      {open === "file" && <FileForm file={file} onChange={setFile} onClose={close} />}
      {open === "reset" && (
        <Confirm
          title="Reset the prompt profiles?"
          action="Reset"
          onClose={close}
          onConfirm={async () => {
            await keep(await remove("/api/profiles/presets", {}));
            say("The server's presets apply again.");
          }}
        >
          <p>Your organization's presets, rules and instructions are removed. Those of the server apply again.</p>
        </Confirm>
      )}
    </>
  );
}

/** Which preset a message would get, and why. `file`: changes that are not saved yet. */
function Try({ file }: { file: PresetFile | null }): ReactNode {
  const act = useAct();
  const [text, setText] = useState("");
  const [mode, setMode] = useState("");
  const [found, setFound] = useState<Schemas["TriedProfile"] | null>(null);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    setFound(null);
    void act.run(async () => setFound(await post("/api/profiles/try", { body: { text, mode: mode.trim(), ...(file && { presets: file as unknown as Told["document"] }) } })));
  };
  return (
    <Section title="Try a message" about={file ? "Which preset this message would get with your unsaved changes, and why." : "Which preset this message would get, and why."}>
      <form className={css.form} onSubmit={submit}>
        <TextArea label="Message" rows={2} required maxLength={100_000} placeholder="Tell me briefly: is there tea?" value={text} onChange={(event) => setText(event.target.value)} />
        <div className={css.bar}>
          <TextField label="Mode" placeholder="Handle of an agent" maxLength={100} value={mode} onChange={(event) => setMode(event.target.value)} />
          <Button type="submit" icon={<FlaskConical size={16} />} busy={act.busy} disabled={!text.trim()}>
            Try
          </Button>
        </div>
      </form>
      <Fault error={act.error} />
      <div role="status">
        {found && (
          <div className={css.tried}>
            <p>
              <strong>{found.id ?? "No preset"}</strong> <span className={css.faint}>{found.reason}</span>
            </p>
            <p className={css.addon}>{found.text || "Adds no instructions."}</p>
          </div>
        )}
      </div>
    </Section>
  );
}

interface PartProps {
  file: PresetFile;
  onOpen: (open: Open) => void;
  onChange: (file: PresetFile) => void;
}

function Presets({ file, addons, onOpen, onChange }: PartProps & { addons: Told["addons"] }): ReactNode {
  return (
    <Section
      title="Presets"
      about="What each preset adds to an agent's instructions."
      action={
        <Button small icon={<Plus size={16} />} onClick={() => onOpen({ preset: null })}>
          New preset
        </Button>
      }
    >
      <ul className={css.rows} aria-label="Presets">
        {file.presets.map((each) => (
          <li key={each.id} className={css.row}>
            <span className={css.words}>
              <span className={css.name}>{nameOf(each)}</span>
              {each.description && <span className={css.faint}>{each.description}</span>}
              <span className={css.addon}>{presetText(file, addons, each) || "Adds no instructions."}</span>
            </span>
            <IconButton label={`Edit ${nameOf(each)}`} icon={<Pencil size={16} />} onClick={() => onOpen({ preset: each })} />
            <IconButton label={`Remove ${nameOf(each)}`} icon={<Trash2 size={16} />} disabled={file.presets.length === 1} onClick={() => onChange(withoutPreset(file, each.id))} />
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Rules({ file, onOpen, onChange }: PartProps): ReactNode {
  const labels = new Map(file.presets.map((each) => [each.id, nameOf(each)]));
  const rules = rulesInOrder(file);
  return (
    <Section
      title="Rules"
      about="Checked from the top. The first rule that applies chooses the preset. Keywords are whole words, in any case."
      action={
        <Button small icon={<Plus size={16} />} onClick={() => onOpen({ rule: null })}>
          New rule
        </Button>
      }
    >
      {rules.length === 0 && <p className={css.faint}>No rules yet. The default preset applies to every message.</p>}
      <ol className={css.rows} aria-label="Rules">
        {rules.map(({ rule, at }) => {
          const name = rule.id || `Rule ${at + 1}`;
          return (
            <li key={at} className={css.row}>
              <span className={css.words}>
                <span className={css.name}>
                  {name} <span className={css.faint}>→ {labels.get(rule.presetId) ?? rule.presetId}</span>
                </span>
                <span className={css.facts}>{conditionWords(rule)}</span>
              </span>
              <IconButton label={`Edit rule ${name}`} icon={<Pencil size={16} />} onClick={() => onOpen({ rule: at })} />
              <IconButton label={`Remove rule ${name}`} icon={<Trash2 size={16} />} onClick={() => onChange({ ...file, rules: (file.rules ?? []).filter((_, index) => index !== at) })} />
            </li>
          );
        })}
      </ol>
    </Section>
  );
}

/** What applies where no rule does, when a preset is chosen again, and how conversations are summarized. */
function Defaults({ file, onChange }: Omit<PartProps, "onOpen">): ReactNode {
  const routing = file.routing ?? {};
  const byMode = Object.entries(routing.defaultPresetByMode ?? {});
  const [mode, setMode] = useState("");
  const change = (part: Partial<Routing>): void => onChange({ ...file, routing: { ...routing, ...part } });
  const options = file.presets.map((each) => (
    <option key={each.id} value={each.id}>
      {nameOf(each)}
    </option>
  ));
  const summaries = [...new Set(["standard", "off", ...Object.keys(file.memoryCompaction?.profiles ?? {})])];
  const add = (): void => {
    change({ defaultPresetByMode: { ...routing.defaultPresetByMode, [mode.trim()]: file.presets[0]!.id } });
    setMode("");
  };
  return (
    <Section title="Defaults" about="What applies if no rule does, and when a preset is chosen again.">
      <div className={css.pair}>
        <Select
          label="Default preset"
          value={routing.defaultPresetId ?? ""}
          onChange={(event) => {
            const { defaultPresetId: _, ...rest } = routing;
            onChange({ ...file, routing: event.target.value ? { ...rest, defaultPresetId: event.target.value } : rest });
          }}
        >
          <option value="">None</option>
          {options}
        </Select>
        <TextField
          label="Choose again every so many turns"
          type="number"
          min={0}
          step={1}
          hint="0: only the first turn chooses."
          value={String(routing.reviewEveryNTurns ?? DEFAULT_REVIEW_TURNS)}
          onChange={(event) => change({ reviewEveryNTurns: Math.max(0, Math.trunc(Number(event.target.value))) })}
        />
        <Select label="Summaries of conversations" value={file.memoryCompaction?.defaultProfile ?? "standard"} onChange={(event) => onChange({ ...file, memoryCompaction: { ...file.memoryCompaction, defaultProfile: event.target.value } })}>
          {summaries.map((each) => (
            <option key={each} value={each}>
              {each}
            </option>
          ))}
        </Select>
      </div>
      <Checkbox label="Choose again after a summary" hint="When an agent's past was compacted, or the conversation was summarized." checked={routing.forceReviewOnCompaction ?? true} onChange={(event) => change({ forceReviewOnCompaction: event.target.checked })} />
      <div>
        <h3>Default by mode</h3>
        <p className={css.about}>The mode of an agent is its handle, unless its definition sets another. A part of it is enough.</p>
      </div>
      <ul className={css.rows} aria-label="Default by mode">
        {byMode.map(([each, preset]) => (
          <li key={each} className={css.row}>
            <span className={css.words}>
              <span className={css.name}>{each}</span>
            </span>
            <select className={css.modePreset} aria-label={`Default preset of ${each}`} value={preset} onChange={(event) => change({ defaultPresetByMode: { ...routing.defaultPresetByMode, [each]: event.target.value } })}>
              {options}
            </select>
            <IconButton label={`Remove the default of ${each}`} icon={<Trash2 size={16} />} onClick={() => change({ defaultPresetByMode: Object.fromEntries(byMode.filter(([other]) => other !== each)) })} />
          </li>
        ))}
      </ul>
      <div className={css.bar}>
        <TextField label="New mode" maxLength={100} placeholder="ada" value={mode} onChange={(event) => setMode(event.target.value)} />
        <Button icon={<Plus size={16} />} disabled={!mode.trim() || mode.trim() in (routing.defaultPresetByMode ?? {})} onClick={add}>
          Add mode
        </Button>
      </div>
    </Section>
  );
}
