import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Ellipsis, KeyRound, Link2, LogOut, Monitor, Pencil, Plus, RotateCw, Trash2 } from "lucide-react";
import { type FormEvent, type ReactNode, useState } from "react";
import { Once } from "../admin/parts";
import { get, inWords, patch, post, remove, type Schemas } from "../denizen/api";
import { useMe } from "../denizen/hooks";
import { useStore } from "../denizen/live";
import { Page } from "../shell/Page";
import { signOut } from "../shell/signOut";
import { Avatar } from "../ui/Avatar";
import { Badge } from "../ui/Badge";
import { Button } from "../ui/Button";
import { Confirm } from "../ui/Confirm";
import { Dialog, DialogFoot } from "../ui/Dialog";
import { Select, TextField } from "../ui/Field";
import { Menu } from "../ui/Menu";
import { PictureButton } from "../ui/PictureButton";
import { Empty, Loaded } from "../ui/States";
import { Time } from "../ui/Time";
import { useToast } from "../ui/Toast";
import css from "./me.module.css";
import { Notifications } from "./Notifications";
import { base } from "../denizen/base";

type Token = Schemas["KnownToken"];

/** Who one is, what lets one in, and the way out. */
export default function MePage(): ReactNode {
  const me = useMe();
  const [renaming, setRenaming] = useState(false);
  return (
    <Page
      title="You"
      actions={
        <Button small icon={<LogOut size={16} />} onClick={() => void signOut()}>
          Sign out
        </Button>
      }
    >
      <section className={css.who} aria-label="Account">
        <Avatar name={me.name} id={me.id} kind={me.kind} size="large" />
        <div>
          <h2>{me.name}</h2>
          <p className={css.soft}>
            @{me.handle} · {me.role} of {me.organization.name}
          </p>
        </div>
        <Button small icon={<Pencil size={14} />} onClick={() => setRenaming(true)}>
          Change name
        </Button>
        <PictureButton id={me.id} />
        {renaming && <ChangeName name={me.name} onClose={() => setRenaming(false)} />}
      </section>
      <Notifications />
      <Ways />
    </Page>
  );
}

/** One's own name, as others see it. */
function ChangeName({ name, onClose }: { name: string; onClose: () => void }): ReactNode {
  const client = useQueryClient();
  const store = useStore();
  const toast = useToast();
  const [text, setText] = useState(name);
  const save = useMutation({
    mutationFn: () => patch("/api/me", { body: { name: text.trim() } }),
    onSuccess: (now) => {
      client.setQueryData(["me"], now);
      store.dispatch({ type: "me", me: now });
      toast("Name changed.");
      onClose();
    },
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    save.mutate();
  };
  return (
    <Dialog title="Change your name" onClose={onClose}>
      <form className={css.form} onSubmit={submit}>
        <TextField
          label="Name"
          required
          autoFocus
          maxLength={120}
          value={text}
          hint="Everyone sees it, and agents in your spaces are told. Your handle stays."
          error={save.error ? inWords(save.error) : undefined}
          onChange={(event) => setText(event.target.value)}
        />
        <DialogFoot onCancel={onClose}>
          <Button type="submit" variant="primary" busy={save.isPending} disabled={!text.trim()}>
            Save
          </Button>
        </DialogFoot>
      </form>
    </Dialog>
  );
}

function Ways(): ReactNode {
  const client = useQueryClient();
  const tokens = useQuery({ queryKey: ["tokens", "mine"], queryFn: () => get("/api/tokens") });
  const [making, setMaking] = useState(false);
  const [shown, setShown] = useState<{ title: string; text: string; note: string } | null>(null);
  const toast = useToast();
  const changed = (): void => void client.invalidateQueries({ queryKey: ["tokens", "mine"] });
  const link = useMutation({
    mutationFn: () => post("/api/logins", { body: {} }),
    onSuccess: (made) => setShown({ title: "Sign-in link", text: made.url, note: "Whoever opens this link first is signed in as you. It works once, within ten minutes. Do not share it." }),
    onError: (error) => toast(inWords(error)),
  });
  const secret = (made: Schemas["TokenCreated"]): void =>
    setShown({ title: `Secret of “${made.token.name}”`, text: made.secret, note: "Copy it now: it is shown only once." });
  return (
    <>
      <section className={css.section}>
        <div className={css.sectionHead}>
          <h2>Sessions and tokens</h2>
          <Button small icon={<Link2 size={16} />} busy={link.isPending} onClick={() => link.mutate()}>
            Sign in on another device
          </Button>
          <Button small variant="primary" icon={<Plus size={16} />} onClick={() => setMaking(true)}>
            New token
          </Button>
        </div>
        <Loaded query={tokens} lines={5}>
          {({ tokens: all }) => <TokenList tokens={all.filter((each) => each.kind !== "login" && each.revoked_at === null)} onChanged={changed} onSecret={secret} />}
        </Loaded>
      </section>
      {making && (
        <NewToken
          onClose={() => setMaking(false)}
          onMade={(made) => {
            setMaking(false);
            changed();
            secret(made);
          }}
        />
      )}
      {shown && <Once title={shown.title} about={shown.note} label="Secret" value={shown.text} onClose={() => setShown(null)} />}
    </>
  );
}

function TokenList({ tokens, onChanged, onSecret }: { tokens: Token[]; onChanged: () => void; onSecret: (made: Schemas["TokenCreated"]) => void }): ReactNode {
  if (tokens.length === 0) return <Empty title="No tokens yet." />;
  return (
    <ul className={css.tokens}>
      {tokens.map((token) => (
        <li key={token.id}>
          <TokenRow token={token} onChanged={onChanged} onSecret={onSecret} />
        </li>
      ))}
    </ul>
  );
}

function TokenRow({ token, onChanged, onSecret }: { token: Token; onChanged: () => void; onSecret: (made: Schemas["TokenCreated"]) => void }): ReactNode {
  const me = useMe();
  const [asking, setAsking] = useState<"revoke" | "rotate" | null>(null);
  const path = { token_id: token.id };
  const here = token.id === me.token.id;
  const revoke = async (): Promise<void> => {
    await remove("/api/tokens/{token_id}", { path });
    if (here) location.assign(`${base}/login`);
    onChanged();
  };
  const rotate = async (): Promise<void> => {
    onSecret(await post("/api/tokens/{token_id}/rotate", { path }));
    onChanged();
  };
  const session = token.kind === "session";
  return (
    <div className={css.token}>
      {session ? <Monitor size={18} aria-hidden /> : <KeyRound size={18} aria-hidden />}
      <div className={css.tokenWords}>
        <span className={css.tokenName}>
          {session ? "Browser" : token.name} {here && <Badge tone="accent">this one</Badge>} <Badge>{token.role}</Badge>
        </span>
        <span className={css.soft}>
          since <Time value={token.created_at} />
          {token.last_used_at && (
            <>
              {" "}
              · used <Time value={token.last_used_at} form="ago" />
            </>
          )}
          {token.expires_at && (
            <>
              {" "}
              · until <Time value={token.expires_at} />
            </>
          )}
        </span>
      </div>
      <Menu
        label={`Actions for ${session ? "this browser" : token.name}`}
        icon={<Ellipsis size={17} />}
        items={[
          ...(session ? [] : [{ label: "Replace secret", icon: <RotateCw size={16} />, onSelect: () => setAsking("rotate") }]),
          { label: "Revoke", icon: <Trash2 size={16} />, onSelect: () => setAsking("revoke"), danger: true },
        ]}
      />
      {asking === "revoke" && (
        <Confirm title={`Revoke “${session ? "Browser" : token.name}”?`} action="Revoke" onConfirm={revoke} onClose={() => setAsking(null)}>
          <p>
            {session ? "That browser is signed out at once." : "Programs that use it lose access at once."} This cannot be undone. {here && "You are signed in with it: you will be signed out."}
          </p>
        </Confirm>
      )}
      {asking === "rotate" && (
        <Confirm title={`Replace the secret of “${token.name}”?`} action="Replace secret" danger={false} onConfirm={rotate} onClose={() => setAsking(null)}>
          <p>The old secret stops working at once. The new one is shown only once.</p>
        </Confirm>
      )}
    </div>
  );
}

const DAYS = [
  ["", "never"],
  ["30", "in 30 days"],
  ["90", "in 90 days"],
  ["365", "in a year"],
] as const;

function NewToken({ onClose, onMade }: { onClose: () => void; onMade: (made: Schemas["TokenCreated"]) => void }): ReactNode {
  const me = useMe();
  const [name, setName] = useState("");
  const [role, setRole] = useState("member");
  const [days, setDays] = useState("90");
  const roles = ["member", "admin", "owner"].slice(0, 1 + Math.max(0, ["member", "admin", "owner"].indexOf(me.role)));
  const make = useMutation({
    mutationFn: () => {
      const expires_at = days ? new Date(Date.now() + Number(days) * 86_400_000).toISOString() : null;
      return post("/api/tokens", { body: { name: name.trim(), role: role as "member", expires_at, speaks_for_others: false } });
    },
    onSuccess: onMade,
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    make.mutate();
  };
  return (
    <Dialog title="New token" onClose={onClose}>
      <form className={css.form} onSubmit={submit}>
        <TextField label="Purpose" required autoFocus maxLength={120} value={name} onChange={(event) => setName(event.target.value)} placeholder="Backup script" error={make.error ? inWords(make.error) : undefined} />
        <Select label="Maximum role" value={role} onChange={(event) => setRole(event.target.value)}>
          {roles.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </Select>
        <Select label="Expires" value={days} onChange={(event) => setDays(event.target.value)}>
          {DAYS.map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </Select>
        <DialogFoot onCancel={onClose}>
          <Button variant="primary" type="submit" busy={make.isPending} disabled={!name.trim()}>
            Create token
          </Button>
        </DialogFoot>
      </form>
    </Dialog>
  );
}
