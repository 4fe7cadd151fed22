import { useQuery, useQueryClient } from "@tanstack/react-query";
import { EllipsisVertical, KeyRound, Plus, RotateCw, Trash2 } from "lucide-react";
import { type ReactNode, useState } from "react";
import { useSearchParams } from "wouter";
import { useModels } from "../agents/ModelField";
import { get, put, remove, type Schemas } from "../denizen/api";
import { Badge } from "../ui/Badge";
import { Button } from "../ui/Button";
import { Confirm } from "../ui/Confirm";
import { Select, TextField } from "../ui/Field";
import { Menu } from "../ui/Menu";
import { Empty, Loaded } from "../ui/States";
import { Time } from "../ui/Time";
import { useToast } from "../ui/Toast";
import { useAct } from "../ui/useAct";
import css from "./admin.module.css";
import { faultOf, FormDialog, Section } from "./parts";

type Key = Schemas["KeyOut"];
type Open = { what: "set"; name: string; whose: Key["whose"]; known: boolean } | { what: "remove"; key: Key };

/** Keys of providers and services: set and removed, never shown. */
export default function Keys(): ReactNode {
  const client = useQueryClient();
  const say = useToast();
  const [search, setSearch] = useSearchParams();
  const asked = search.get("name");
  const [open, setOpen] = useState<Open | null>(asked ? { what: "set", name: asked, whose: "organization", known: false } : null);
  const keys = useQuery({ queryKey: ["keys"], queryFn: ({ signal }) => get("/api/keys", { signal }).then((told) => told.keys) });
  const changed = (): Promise<unknown> => Promise.all([client.invalidateQueries({ queryKey: ["keys"] }), client.invalidateQueries({ queryKey: ["models"] })]);
  const close = (): void => {
    setOpen(null);
    if (asked) setSearch({}, { replace: true });
  };
  return (
    <Section
      title="Keys"
      about="API keys of model providers, and secrets that tools use as ${NAME}. They are stored encrypted and cannot be shown again."
      action={
        <Button variant="primary" small icon={<Plus size={16} />} onClick={() => setOpen({ what: "set", name: "", whose: "organization", known: false })}>
          Add key
        </Button>
      }
    >
      <Loaded query={keys}>
        {(all) =>
          all.length === 0 ? (
            <Empty title="No keys yet." icon={<KeyRound size={28} aria-hidden />}>
              <p>Add a provider's key, such as ANTHROPIC_API_KEY or OPENAI_API_KEY, so that agents can use its models.</p>
            </Empty>
          ) : (
            <ul className={css.rows} aria-label="Keys">
              {all.map((key) => (
                <li key={`${key.whose} ${key.name}`} className={css.row}>
                  <span className={css.words}>
                    <code className={css.keyName}>{key.name}</code>
                    <span className={css.facts}>
                      <span>{key.hint ? <>ends in {key.hint.replace("…", "")}</> : "not shown"}</span>
                      <span>
                        set <Time value={key.updated_at} form="ago" />
                      </span>
                    </span>
                  </span>
                  <Badge tone={key.whose === "me" ? "accent" : "plain"}>{key.whose === "me" ? "your own" : "the organization's"}</Badge>
                  <Menu
                    label={`Actions for ${key.name}`}
                    icon={<EllipsisVertical size={18} />}
                    items={[
                      { label: "Replace", icon: <RotateCw size={16} />, onSelect: () => setOpen({ what: "set", name: key.name, whose: key.whose, known: true }) },
                      { label: "Remove", icon: <Trash2 size={16} />, danger: true, onSelect: () => setOpen({ what: "remove", key }) },
                    ]}
                  />
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
      {open?.what === "set" && (
        <SetKey
          {...open}
          onClose={close}
          onDone={async (name) => {
            await changed();
            close();
            say(`${name} saved.`);
          }}
        />
      )}
      {open?.what === "remove" && (
        <Confirm
          title={`Remove ${open.key.name}?`}
          action="Remove key"
          onClose={close}
          onConfirm={async () => {
            await remove("/api/keys/{name}", { path: { name: open.key.name }, query: { whose: open.key.whose } });
            await changed();
            say(`${open.key.name} removed.`);
          }}
        >
          <p>Agents that need this key can no longer use its models or tools. Agents that are working now may use it until they finish.</p>
        </Confirm>
      )}
    </Section>
  );
}

function SetKey(props: { name: string; whose: Key["whose"]; known: boolean; onClose: () => void; onDone: (name: string) => Promise<void> }): ReactNode {
  const act = useAct();
  const models = useModels();
  const [name, setName] = useState(props.name);
  const [value, setValue] = useState("");
  const [whose, setWhose] = useState(props.whose);
  const wrong = name !== "" && !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? "Use letters, digits and _, like an environment variable." : undefined;
  const provider = models.data?.missing_keys.find((each) => each.key === name)?.provider;
  const submit = async (): Promise<void> => {
    await put("/api/keys/{name}", { path: { name }, body: { value: value.trim(), whose } });
    await props.onDone(name);
  };
  return (
    <FormDialog title={props.known ? `Replace ${props.name}` : "Add key"} action="Save" act={act} disabled={!name || Boolean(wrong) || !value.trim()} fields={["name", "value"]} onSubmit={submit} onClose={props.onClose}>
      {!props.known && (
        <>
          <TextField
            label="Name"
            list="known-keys"
            autoFocus={!props.name}
            placeholder="OPENAI_API_KEY"
            spellCheck={false}
            value={name}
            onChange={(event) => setName(event.target.value.trim())}
            error={wrong ?? faultOf(act.error, "name")}
            hint={provider ? `Used for models of ${provider}.` : "A provider's variable name is used for its models; any other name is for tools."}
          />
          <datalist id="known-keys">
            {[...new Set(models.data?.missing_keys.map((each) => each.key))].map((each) => (
              <option key={each} value={each} />
            ))}
          </datalist>
        </>
      )}
      <TextField label="Key" type="password" autoComplete="off" autoFocus={Boolean(props.name)} value={value} onChange={(event) => setValue(event.target.value)} error={faultOf(act.error, "value")} />
      {!props.known && (
        <Select
          label="Whose"
          value={whose}
          onChange={(event) => setWhose(event.target.value as Key["whose"])}
          hint={whose === "me" ? "Used by agents that name you as the payer." : "Used by every agent without its own payer."}
        >
          <option value="organization">The organization's</option>
          <option value="me">My own</option>
        </Select>
      )}
    </FormDialog>
  );
}
