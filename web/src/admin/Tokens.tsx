import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Ban, EllipsisVertical, Plus, RotateCw } from "lucide-react";
import { type ReactNode, useState } from "react";
import { useSearchParams } from "wouter";
import { type Entity, get, post, remove, type Schemas } from "../denizen/api";
import { useEntities, useMe } from "../denizen/hooks";
import { Badge } from "../ui/Badge";
import { Button } from "../ui/Button";
import { Confirm } from "../ui/Confirm";
import { Checkbox, Select, TextField } from "../ui/Field";
import { Menu } from "../ui/Menu";
import { Empty, Loaded } from "../ui/States";
import { Time } from "../ui/Time";
import { useToast } from "../ui/Toast";
import { useAct } from "../ui/useAct";
import css from "./admin.module.css";
import { faultOf, FormDialog, Once, Section } from "./parts";

type Token = Schemas["KnownToken"];
type Open = { what: "create" } | { what: "rotate" | "revoke"; token: Token } | { what: "secret"; name: string; value: string };

const KINDS: Record<Token["kind"], string> = { token: "token", session: "session", login: "login link", jwt: "identity provider" };

/** What lets someone in: made, given a new secret, revoked. */
export default function Tokens(): ReactNode {
  const me = useMe();
  const client = useQueryClient();
  const say = useToast();
  const entities = useEntities();
  const [search, setSearch] = useSearchParams();
  const [open, setOpen] = useState<Open | null>(null);
  const [all, setAll] = useState(false);
  const of = search.get("of") ?? me.id;
  const tokens = useQuery({
    queryKey: ["tokens", of],
    queryFn: ({ signal }) => get("/api/tokens", { query: { entity: of }, signal }).then((told) => told.tokens.reverse()),
  });
  const changed = (): Promise<void> => client.invalidateQueries({ queryKey: ["tokens"] });
  const close = (): void => setOpen(null);
  const whose = allowed(entities.data ?? [], me.id, me.role === "owner");
  const who = entities.data?.find((each) => each.id === of);
  return (
    <Section
      title="Sessions and tokens"
      about="Tokens are for programs, sessions for browsers. A secret is shown only once, when it is created."
      action={
        <Button variant="primary" small icon={<Plus size={16} />} onClick={() => setOpen({ what: "create" })}>
          New token
        </Button>
      }
    >
      <div className={css.bar}>
        <Select label="Person" value={of} onChange={(event) => setSearch(event.target.value === me.id ? {} : { of: event.target.value })}>
          {!whose.some((each) => each.id === of) && <option value={of}>{who?.name ?? me.name}</option>}
          {whose.map((each) => (
            <option key={each.id} value={each.id}>
              {each.name} (@{each.handle}){each.id === me.id ? ", you" : ""}
            </option>
          ))}
        </Select>
        <Checkbox label="Show expired and revoked" checked={all} onChange={(event) => setAll(event.target.checked)} />
      </div>
      <Loaded query={tokens}>
        {(known) => {
          const shown = known.filter((each) => all || isGood(each));
          return shown.length === 0 ? (
            <Empty title="No sessions or tokens.">
              <p>Create a token for a program, or a sign-in link for a browser under People.</p>
            </Empty>
          ) : (
            <ul className={css.rows} aria-label="Tokens">
              {shown.map((token) => (
                <Row key={token.id} token={token} mine={token.id === me.token.id} onOpen={setOpen} />
              ))}
            </ul>
          );
        }}
      </Loaded>
      {open?.what === "create" && (
        <Create
          of={of}
          human={who === undefined || who.kind === "human"}
          name={who?.name ?? me.name}
          onClose={close}
          onDone={(next) => {
            void changed();
            setOpen(next);
          }}
        />
      )}
      {open?.what === "rotate" && (
        <Rotate
          token={open.token}
          onClose={close}
          onDone={(next) => {
            void changed();
            setOpen(next);
          }}
        />
      )}
      {open?.what === "revoke" && (
        <Confirm
          title={`Revoke “${open.token.name}”?`}
          action="Revoke"
          onClose={close}
          onConfirm={async () => {
            await remove("/api/tokens/{token_id}", { path: { token_id: open.token.id } });
            await changed();
            say("Revoked.");
          }}
        >
          <p>Programs that use it lose access at once. This cannot be undone.{open.token.id === me.token.id && " You are signed in with it: you will be signed out."}</p>
        </Confirm>
      )}
      {open?.what === "secret" && (
        <Once title={`“${open.name}”`} about="Copy this secret now: it is shown only once. Anyone who has it can act with this token's permissions." label="Token" value={open.value} onClose={close} />
      )}
    </Section>
  );
}

function Row({ token, mine, onOpen }: { token: Token; mine: boolean; onOpen: (open: Open) => void }): ReactNode {
  const good = isGood(token);
  const items = [
    ...(token.kind === "token" ? [{ label: "Replace secret", icon: <RotateCw size={16} />, onSelect: () => onOpen({ what: "rotate", token }) }] : []),
    { label: "Revoke", icon: <Ban size={16} />, danger: true, onSelect: () => onOpen({ what: "revoke", token }) },
  ];
  return (
    <li className={css.row}>
      <span className={css.words}>
        <span className={css.name}>
          {token.name || KINDS[token.kind]} {mine && <span className={css.faint}>(this browser)</span>}
        </span>
        <span className={css.facts}>
          <span>
            made <Time value={token.created_at} form="ago" />
          </span>
          <span>{token.last_used_at ? <>used <Time value={token.last_used_at} form="ago" /></> : "never used"}</span>
          {token.revoked_at ? (
            <span>
              revoked <Time value={token.revoked_at} form="ago" />
            </span>
          ) : token.expires_at ? (
            <span>
              {good ? "expires" : "expired"} <Time value={token.expires_at} />
            </span>
          ) : (
            <span>does not expire</span>
          )}
        </span>
      </span>
      <span className={css.badges}>
        <Badge>{KINDS[token.kind]}</Badge>
        <Badge tone={token.role === "owner" || token.role === "admin" ? "accent" : "plain"}>{token.role}</Badge>
        {!good && <Badge tone="bad">{token.revoked_at ? "revoked" : "expired"}</Badge>}
      </span>
      {good ? <Menu label={`Actions for ${token.name}`} icon={<EllipsisVertical size={18} />} items={items} /> : <span className={css.menuPlace} />}
    </li>
  );
}

const DAYS: [string, string][] = [
  ["30", "30 days"],
  ["90", "90 days"],
  ["365", "One year"],
  ["", "No expiry"],
];

function Create({ of, human, name: whose, onClose, onDone }: { of: string; human: boolean; name: string; onClose: () => void; onDone: (next: Open) => void }): ReactNode {
  const me = useMe();
  const act = useAct();
  const [name, setName] = useState("");
  const [role, setRole] = useState<"owner" | "admin" | "member">("member");
  const [days, setDays] = useState("90");
  const submit = async (): Promise<void> => {
    const expires = days ? new Date(Date.now() + Number(days) * 86_400_000).toISOString() : undefined;
    const made = await post("/api/tokens", { body: { name: name.trim(), entity: of, role: human ? role : undefined, expires_at: expires, speaks_for_others: false } });
    onDone({ what: "secret", name: made.token.name, value: made.secret });
  };
  return (
    <FormDialog title={of === me.id ? "New token" : `New token for ${whose}`} action="Create token" act={act} disabled={!name.trim()} fields={["name", "role", "expires_at"]} onSubmit={submit} onClose={onClose}>
      <TextField label="Purpose" placeholder="Backup script" autoFocus required maxLength={120} value={name} onChange={(event) => setName(event.target.value)} error={faultOf(act.error, "name")} />
      {human && (
        <Select label="Maximum role" value={role} onChange={(event) => setRole(event.target.value as typeof role)} error={faultOf(act.error, "role")} hint="Never more than the person it belongs to, and never more than you.">
          <option value="member">Member: spaces and talking to agents</option>
          <option value="admin">Admin: also agents, people, keys</option>
          {me.role === "owner" && <option value="owner">Owner: everything</option>}
        </Select>
      )}
      <Select label="Expires after" value={days} onChange={(event) => setDays(event.target.value)} error={faultOf(act.error, "expires_at")}>
        {DAYS.map(([value, label]) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </Select>
    </FormDialog>
  );
}

function Rotate({ token, onClose, onDone }: { token: Token; onClose: () => void; onDone: (next: Open) => void }): ReactNode {
  return (
    <Confirm
      title={`Replace the secret of “${token.name}”?`}
      action="Replace secret"
      danger={false}
      onClose={() => undefined}
      onConfirm={async () => {
        const made = await post("/api/tokens/{token_id}/rotate", { path: { token_id: token.id } });
        onDone({ what: "secret", name: made.token.name, value: made.secret });
      }}
      onCancel={onClose}
    >
      <p>The old secret stops working at once. The new one is shown only once.</p>
    </Confirm>
  );
}

function isGood(token: Token): boolean {
  return token.revoked_at === null && (token.expires_at === null || Date.parse(token.expires_at) > Date.now());
}

/** Those whose tokens one may see: owners everyone's, admins those of whoever is less. */
function allowed(entities: Entity[], me: string, owner: boolean): Entity[] {
  return entities.filter((each) => owner || each.id === me || (each.role !== "owner" && each.role !== "admin"));
}
