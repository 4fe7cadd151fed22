import { useQuery, useQueryClient } from "@tanstack/react-query";
import { EllipsisVertical, Link2, Pause, Play, Plus, RotateCw, Trash2, Unlink } from "lucide-react";
import { type ReactNode, useState } from "react";
import { get, post, remove, type Schemas } from "../denizen/api";
import { useSpaces } from "../denizen/hooks";
import { Badge, type Tone } from "../ui/Badge";
import { Button } from "../ui/Button";
import { Confirm } from "../ui/Confirm";
import { Checkbox, Select, TextArea, TextField } from "../ui/Field";
import { Menu } from "../ui/Menu";
import { Empty, Loaded } from "../ui/States";
import { Time } from "../ui/Time";
import { useToast } from "../ui/Toast";
import { useAct, useActWithToast } from "../ui/useAct";
import css from "./admin.module.css";
import { FormDialog, Once, Section } from "./parts";

type Bridge = Schemas["BridgeOut"];
type Channel = Schemas["ChannelOut"];
type Kind = Schemas["BridgeKindOut"];
type Setting = Schemas["BridgeSettingOut"];
type Address = Schemas["BridgeAddressOut"];
type Open =
  | { what: "create" }
  | { what: "connect" | "remove"; bridge: Bridge }
  | { what: "disconnect"; bridge: Bridge; channel: Channel }
  | { what: "unlink"; bridge: Bridge; address: Address }
  | { what: "secret"; name: string; value: string };

const TONES: Record<string, Tone> = { connected: "good", failing: "warn", parked: "bad", paused: "plain", stopped: "plain" };

/** Bridges to services elsewhere: how each does, what is connected, and who has linked an account. */
export default function Bridges(): ReactNode {
  const client = useQueryClient();
  const say = useToast();
  const [open, setOpen] = useState<Open | null>(null);
  const bridges = useQuery({
    queryKey: ["bridges"],
    queryFn: ({ signal }) => get("/api/bridges", { signal }),
    refetchInterval: 10_000,
  });
  const close = (): void => setOpen(null);
  const changed = (): Promise<void> => client.invalidateQueries({ queryKey: ["bridges"] });
  const done = async (said: string): Promise<void> => {
    await changed();
    say(said);
  };
  return (
    <Section
      title="Bridges"
      about="A bridge connects spaces with other places where people write: a mailbox, a chat service, or your own program."
      action={
        <Button variant="primary" small icon={<Plus size={16} />} onClick={() => setOpen({ what: "create" })}>
          New bridge
        </Button>
      }
    >
      <Loaded query={bridges}>
        {(told) =>
          told.bridges.length === 0 ? (
            <Empty title="No bridges.">
              <p>Create one, then connect a room of that service with a space.</p>
            </Empty>
          ) : (
            <ul className={css.rows} aria-label="Bridges">
              {told.bridges.map((bridge) => (
                <Row key={bridge.id} bridge={bridge} onOpen={setOpen} onDone={done} />
              ))}
            </ul>
          )
        }
      </Loaded>
      {open?.what === "create" && (
        <Create
          kinds={bridges.data?.kinds ?? []}
          onClose={close}
          onDone={(next) => {
            void changed();
            setOpen(next);
          }}
        />
      )}
      {open?.what === "connect" && <Connect bridge={open.bridge} onClose={close} onDone={() => void done("Connected.").then(close)} />}
      {open?.what === "remove" && (
        <Confirm
          title={`Delete “${open.bridge.name}”?`}
          action="Delete bridge"
          onClose={close}
          onConfirm={async () => {
            await remove("/api/bridges/{bridge_id}", { path: { bridge_id: open.bridge.id } });
            await done("Deleted.");
          }}
        >
          <p>The bridge stops, and waiting messages are not sent. Messages that are here stay. This cannot be undone.</p>
        </Confirm>
      )}
      {open?.what === "disconnect" && (
        <Confirm
          title={`Disconnect ${open.channel.room ?? "this room"}?`}
          action="Disconnect"
          onClose={close}
          onConfirm={async () => {
            await remove("/api/channels/{channel_id}", { path: { channel_id: open.channel.id } });
            await done("Disconnected.");
          }}
        >
          <p>
            Messages are no longer sent between it and {open.channel.space_name ?? "its space"}
            {open.channel.conversations > 0 && `, nor in its ${open.channel.conversations} conversations`}.
          </p>
        </Confirm>
      )}
      {open?.what === "unlink" && (
        <Confirm
          title={`Unlink ${open.address.account}?`}
          action="Unlink"
          onClose={close}
          onConfirm={async () => {
            await remove("/api/bridges/{bridge_id}/addresses/{account}", { path: { bridge_id: open.bridge.id, account: open.address.account } });
            await client.invalidateQueries({ queryKey: ["bridge addresses", open.bridge.id] });
            say("Unlinked.");
          }}
        >
          <p>What it writes is a guest’s again, and no longer {open.address.person}’s.</p>
        </Confirm>
      )}
      {open?.what === "secret" && (
        <Once title={`“${open.name}”`} about="Copy this secret now: it is shown only once. Both sides sign with it." label="Secret" value={open.value} onClose={close} />
      )}
    </Section>
  );
}

function Row({ bridge, onOpen, onDone }: { bridge: Bridge; onOpen: (open: Open) => void; onDone: (said: string) => Promise<void> }): ReactNode {
  const [people, setPeople] = useState(false);
  const paused = bridge.state === "paused";
  const path = { path: { bridge_id: bridge.id } };
  const act = useActWithToast();
  const run = (what: () => Promise<unknown>, said: string): void => void act.run(async () => what().then(() => onDone(said)));
  const items = [
    { label: "Connect a room", icon: <Link2 size={16} />, onSelect: () => onOpen({ what: "connect", bridge }) },
    paused
      ? { label: "Resume", icon: <Play size={16} />, onSelect: () => run(() => post("/api/bridges/{bridge_id}/resume", path), "Resumed.") }
      : { label: "Pause", icon: <Pause size={16} />, onSelect: () => run(() => post("/api/bridges/{bridge_id}/pause", path), "Paused.") },
    { label: "Try again now", icon: <RotateCw size={16} />, onSelect: () => run(() => post("/api/bridges/{bridge_id}/retry", path), "Trying again.") },
    { label: "Delete", icon: <Trash2 size={16} />, danger: true, onSelect: () => onOpen({ what: "remove", bridge }) },
  ];
  return (
    <li className={css.row}>
      <div className={css.words}>
        <span className={css.name}>{bridge.name}</span>
        <Facts bridge={bridge} />
        {bridge.problem && (
          <p className={css.remedy}>
            {bridge.problem} {bridge.problem_at && <Time value={bridge.problem_at} form="ago" />}
          </p>
        )}
        {bridge.channels.length > 0 && (
          <ul className={css.plainRows} aria-label={`Rooms of ${bridge.name}`}>
            {bridge.channels.map((channel) => (
              <li key={channel.id}>
                <span>
                  {channel.room ?? "A private space"}
                  {channel.space_name && <> ↔ {channel.space_name}</>}
                  {channel.conversations > 0 && <span className={css.faint}> · {channel.conversations} conversations</span>}
                  {!channel.connected && <span className={css.faint}> · removed from the space</span>}
                </span>
                <Button small variant="quiet" onClick={() => onOpen({ what: "disconnect", bridge, channel })} aria-label={`Disconnect ${channel.room ?? "the private space"}`}>
                  Disconnect
                </Button>
              </li>
            ))}
          </ul>
        )}
        <div>
          <Button small variant="quiet" aria-expanded={people} onClick={() => setPeople(!people)}>
            {people ? "Hide accounts" : "Show accounts"}
          </Button>
        </div>
        {people && <Addresses bridge={bridge} onOpen={onOpen} />}
      </div>
      <span className={css.badges}>
        <Badge>{bridge.kind}</Badge>
        <Badge tone={TONES[bridge.state] ?? "plain"}>{bridge.state}</Badge>
      </span>
      <Menu label={`Actions for ${bridge.name}`} icon={<EllipsisVertical size={18} />} items={items} />
    </li>
  );
}

function Facts({ bridge }: { bridge: Bridge }): ReactNode {
  return (
    <span className={css.facts}>
      {bridge.state === "paused" && bridge.paused_at && (
        <span>
          paused <Time value={bridge.paused_at} form="ago" />
        </span>
      )}
      <span>
        {bridge.connected_at ? (
          <>
            last worked <Time value={bridge.connected_at} form="ago" />
          </>
        ) : (
          "not connected yet"
        )}
      </span>
      <span>
        {bridge.waiting === 0 ? "nothing waits" : `${bridge.waiting} ${bridge.waiting === 1 ? "waits" : "wait"} to be sent`}
        {bridge.waiting_since && (
          <>
            , since <Time value={bridge.waiting_since} form="ago" />
          </>
        )}
      </span>
      {bridge.failed > 0 && <span>{bridge.failed} not delivered</span>}
      {bridge.retry_at && (
        <span>
          tries again by itself at <Time value={bridge.retry_at} form="near" />
        </span>
      )}
      {bridge.path && <span>{window.location.origin + bridge.path}</span>}
    </span>
  );
}

function Addresses({ bridge, onOpen }: { bridge: Bridge; onOpen: (open: Open) => void }): ReactNode {
  const known = useQuery({
    queryKey: ["bridge addresses", bridge.id],
    queryFn: ({ signal }) => get("/api/bridges/{bridge_id}/addresses", { path: { bridge_id: bridge.id }, signal }).then((told) => told.addresses),
  });
  return (
    <Loaded query={known} lines={2}>
      {(found) =>
        found.length === 0 ? (
          <p className={css.faint}>Nobody has written yet.</p>
        ) : (
          <ul className={css.plainRows} aria-label={`Accounts of ${bridge.name}`}>
            {found.map((address) => (
              <li key={address.account}>
                <span>
                  {address.account} <span className={css.faint}>{address.person ? `linked to ${address.person}` : `guest: ${address.name}`}</span>
                </span>
                {address.person && (
                  <Button small variant="quiet" icon={<Unlink size={15} />} onClick={() => onOpen({ what: "unlink", bridge, address })} aria-label={`Unlink ${address.account}`}>
                    Unlink
                  </Button>
                )}
              </li>
            ))}
          </ul>
        )
      }
    </Loaded>
  );
}

function Create({ kinds, onClose, onDone }: { kinds: Kind[]; onClose: () => void; onDone: (next: Open | null) => void }): ReactNode {
  const act = useAct();
  const [name, setName] = useState("");
  const [kind, setKind] = useState(kinds[0]?.name ?? "");
  const [values, setValues] = useState<Record<string, string>>({});
  const settings = kinds.find((each) => each.name === kind)?.settings ?? [];
  const given = settings.filter((each) => (values[each.name] ?? "").trim() !== "");
  const missing = settings.some((each) => each.required && !given.includes(each));
  const submit = async (): Promise<void> => {
    const wanted = Object.fromEntries(given.map((each) => [each.name, valueOf(each, values[each.name] ?? "")]));
    const made = await post("/api/bridges", { body: { name: name.trim(), kind, settings: wanted } });
    onDone(made.secret ? { what: "secret", name: made.bridge.name, value: made.secret } : null);
  };
  return (
    <FormDialog title="New bridge" action="Create bridge" act={act} disabled={!name.trim() || missing} onSubmit={submit} onClose={onClose}>
      <TextField label="Name" hint="Of its member in spaces." placeholder="Mail" autoFocus required maxLength={120} value={name} onChange={(event) => setName(event.target.value)} />
      <Select label="Kind" value={kind} onChange={(event) => setKind(event.target.value)}>
        {kinds.map((each) => (
          <option key={each.name} value={each.name}>
            {each.name}
          </option>
        ))}
      </Select>
      {settings.map((each) => (
        <SettingField key={`${kind} ${each.name}`} setting={each} value={values[each.name] ?? ""} onChange={(value) => setValues({ ...values, [each.name]: value })} />
      ))}
    </FormDialog>
  );
}

function SettingField({ setting, value, onChange }: { setting: Setting; value: string; onChange: (value: string) => void }): ReactNode {
  const label = setting.required ? setting.name : `${setting.name} (optional)`;
  const hint = setting.secret ? `${setting.about} Only the name of a secret, as \${NAME}; store it with “denizen secrets set”.` : setting.about;
  if (setting.type === "flag") return <Checkbox label={setting.name} hint={hint} checked={value === "true"} onChange={(event) => onChange(event.target.checked ? "true" : "")} />;
  if (setting.type === "list") return <TextArea label={label} hint={`${hint} One on each line.`} rows={2} value={value} onChange={(event) => onChange(event.target.value)} />;
  return (
    <TextField
      label={label}
      hint={hint}
      required={setting.required}
      type={setting.type === "number" ? "number" : "text"}
      placeholder={setting.secret ? "${NAME}" : undefined}
      autoComplete="off"
      value={value}
      onChange={(event) => onChange(event.target.value)}
    />
  );
}

function valueOf(setting: Setting, text: string): string | number | boolean | string[] {
  if (setting.type === "flag") return text === "true";
  if (setting.type === "number") return Number(text);
  if (setting.type === "list") return text.split("\n").map((each) => each.trim()).filter((each) => each !== "");
  return text.trim();
}

function Connect({ bridge, onClose, onDone }: { bridge: Bridge; onClose: () => void; onDone: () => void }): ReactNode {
  const act = useAct();
  const spaces = (useSpaces() ?? []).filter((each) => each.info.kind === "conversation");
  const [space, setSpace] = useState(spaces[0]?.info.id ?? "");
  const [room, setRoom] = useState(bridge.kind === "email" ? "INBOX" : "");
  const submit = async (): Promise<void> => {
    await post("/api/bridges/{bridge_id}/channels", { path: { bridge_id: bridge.id }, body: { space_id: space, room: room.trim() } });
    onDone();
  };
  return (
    <FormDialog title={`Connect a room of ${bridge.name}`} action="Connect" act={act} disabled={!space || !room.trim()} onSubmit={submit} onClose={onClose}>
      <TextField
        label={bridge.kind === "email" ? "Folder" : "Room"}
        hint={bridge.kind === "email" ? "Each conversation in it becomes a space, with the agents of the space below." : "Its id in the other service. Everyone in the room can read the space."}
        autoFocus
        required
        maxLength={255}
        value={room}
        onChange={(event) => setRoom(event.target.value)}
      />
      <Select label="Space" hint="One that you are in." value={space} onChange={(event) => setSpace(event.target.value)}>
        {spaces.map((each) => (
          <option key={each.info.id} value={each.info.id}>
            {each.info.name}
          </option>
        ))}
      </Select>
    </FormDialog>
  );
}
