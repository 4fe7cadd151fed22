import { useQueryClient } from "@tanstack/react-query";
import { EllipsisVertical, KeyRound, Link2, Pencil, UserMinus, UserPlus } from "lucide-react";
import { type ReactNode, useState } from "react";
import { useLocation } from "wouter";
import { type Entity, patch, post, remove } from "../denizen/api";
import { useEntities, useMe } from "../denizen/hooks";
import { useRequestKey } from "../denizen/requestKey";
import { handleFrom } from "../agents/handles";
import { Avatar } from "../ui/Avatar";
import { Badge } from "../ui/Badge";
import { Button } from "../ui/Button";
import { Confirm } from "../ui/Confirm";
import { Select, TextField } from "../ui/Field";
import { Menu, type MenuItem } from "../ui/Menu";
import { Empty, Loaded } from "../ui/States";
import { useToast } from "../ui/Toast";
import { useAct, useActWithToast } from "../ui/useAct";
import css from "./admin.module.css";
import { faultOf, FormDialog, Once, Section } from "./parts";

type PersonRole = "owner" | "admin" | "member";
type Open = { what: "invite" } | { what: "rename" | "remove" | "role"; who: Entity } | { what: "link" | "secret"; name: string; value: string };

const DAY = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const ROLES: { role: PersonRole; label: string; about: string }[] = [
  { role: "member", label: "Member", about: "use their spaces and talk to agents" },
  { role: "admin", label: "Admin", about: "manage agents, people, keys and budgets" },
  { role: "owner", label: "Owner", about: "do everything, including roles and the organization" },
];

/** Who is here, and who comes. */
export function People(): ReactNode {
  const entities = useEntities();
  const client = useQueryClient();
  const say = useToast();
  const [open, setOpen] = useState<Open | null>(null);
  const changed = (): Promise<void> => client.invalidateQueries({ queryKey: ["entities"] });
  const close = (): void => setOpen(null);
  const act = useActWithToast();
  const link = (who: Entity): void =>
    void act.run(async () => {
      const made = await post("/api/logins", { body: { entity: who.id } });
      setOpen({ what: "link", name: who.name, value: made.url });
    });
  return (
    <Section
      title="People and services"
      about="People and services who can sign in and join spaces."
      action={
        <Button variant="primary" small icon={<UserPlus size={16} />} onClick={() => setOpen({ what: "invite" })}>
          Invite
        </Button>
      }
    >
      <Loaded query={entities}>
        {(all) => {
          const shown = all.filter((each) => each.kind !== "agent");
          return shown.length === 0 ? (
            <Empty title="No people yet." />
          ) : (
            <ul className={css.rows} aria-label="People and services">
              {shown.map((who) => (
                <Row key={who.id} who={who} onOpen={setOpen} onLink={() => link(who)} />
              ))}
            </ul>
          );
        }}
      </Loaded>
      {open?.what === "invite" && (
        <Invite
          onClose={close}
          onDone={(next) => {
            void changed();
            setOpen(next);
          }}
        />
      )}
      {open?.what === "rename" && <Rename who={open.who} onClose={close} onDone={changed} />}
      {open?.what === "role" && <Role who={open.who} onClose={close} onDone={changed} />}
      {open?.what === "remove" && (
        <Confirm
          title={`Remove ${open.who.name}?`}
          action={`Remove ${open.who.name}`}
          onClose={close}
          onConfirm={async () => {
            await remove("/api/entities/{entity_id}", { path: { entity_id: open.who.id } });
            await changed();
            say(`${open.who.name} removed.`);
          }}
        >
          <p>Their tokens stop working and they leave all spaces. Their messages stay, under their name.</p>
        </Confirm>
      )}
      {open?.what === "link" && (
        <Once
          title={`Sign-in link for ${open.name}`}
          about="Whoever opens this link first is signed in, so send it to this person only. It works once, within ten minutes. You can create a new one at any time."
          label="Link"
          value={open.value}
          onClose={close}
        />
      )}
      {open?.what === "secret" && (
        <Once title={`Token for ${open.name}`} about="Copy it now: it is shown only once." label="Token" value={open.value} onClose={close} />
      )}
    </Section>
  );
}

function Row({ who, onOpen, onLink }: { who: Entity; onOpen: (open: Open) => void; onLink: () => void }): ReactNode {
  const me = useMe();
  const [, go] = useLocation();
  const owner = me.role === "owner";
  const mighty = who.role === "owner" || who.role === "admin";
  const mayDecide = owner || !mighty || who.id === me.id;
  const human = who.kind === "human";
  const items: MenuItem[] = [
    ...(human && mayDecide ? [{ label: "Create sign-in link", icon: <Link2 size={16} />, onSelect: onLink }] : []),
    ...(mayDecide ? [{ label: "Tokens", icon: <KeyRound size={16} />, onSelect: () => go(`/admin/tokens?of=${who.id}`) }] : []),
    { label: "Rename", icon: <Pencil size={16} />, onSelect: () => onOpen({ what: "rename", who }) },
    ...(human && owner ? [{ label: "Change role", icon: <Pencil size={16} />, onSelect: () => onOpen({ what: "role", who }) }] : []),
    ...(mayDecide && who.id !== me.id ? [{ label: "Remove", icon: <UserMinus size={16} />, danger: true, onSelect: () => onOpen({ what: "remove", who }) }] : []),
  ];
  return (
    <li className={css.row}>
      <Avatar name={who.name} id={who.id} kind={who.kind} />
      <span className={css.words}>
        <span className={css.name}>
          {who.name} {who.id === me.id && <span className={css.faint}>(you)</span>}
        </span>
        <span className={css.faint}>
          @{who.handle} · since <time dateTime={who.created_at}>{DAY.format(new Date(who.created_at))}</time>
        </span>
      </span>
      <Badge tone={mighty ? "accent" : "plain"}>{who.role}</Badge>
      <Menu label={`Actions for ${who.name}`} icon={<EllipsisVertical size={18} />} items={items} />
    </li>
  );
}

/** Someone new: a person is given a link to sign in with, a service a token. */
function Invite({ onClose, onDone }: { onClose: () => void; onDone: (next: Open) => void }): ReactNode {
  const me = useMe();
  const act = useAct();
  const [kind, setKind] = useState<"human" | "service">("human");
  const [name, setName] = useState("");
  const [handle, setHandle] = useState("");
  const [role, setRole] = useState<PersonRole>("member");
  const key = useRequestKey();
  const auto = handleFrom(name);
  const submit = async (): Promise<void> => {
    const chosen = handle.trim().replace(/^@/, "") || undefined;
    const body = { kind, name, handle: chosen, role: kind === "human" ? role : undefined };
    const who = await post("/api/entities", { body, key: key.for(body) });
    if (kind === "human") {
      const made = await post("/api/logins", { body: { entity: who.id } });
      onDone({ what: "link", name: who.name, value: made.url });
    } else {
      const made = await post("/api/tokens", { body: { entity: who.id, name: "First token", speaks_for_others: false } });
      onDone({ what: "secret", name: who.name, value: made.secret });
    }
  };
  return (
    <FormDialog title="Invite" action={kind === "human" ? "Invite" : "Add service"} act={act} disabled={!name.trim()} fields={["name", "handle", "role"]} onSubmit={submit} onClose={onClose}>
      <Select
        label="Who"
        value={kind}
        onChange={(event) => setKind(event.target.value as typeof kind)}
        hint={kind === "human" ? "They sign in with a link that you get next." : "A program that posts in spaces and sends events to agents. You get its token next."}
      >
        <option value="human">A person</option>
        <option value="service">A service</option>
      </Select>
      <TextField label="Name" required autoFocus maxLength={120} value={name} onChange={(event) => setName(event.target.value)} error={faultOf(act.error, "name")} />
      <TextField
        label="Handle"
        value={handle}
        maxLength={41}
        placeholder={auto}
        spellCheck={false}
        onChange={(event) => setHandle(event.target.value)}
        error={faultOf(act.error, "handle")}
        hint={name.trim() && !auto && !handle ? "Choose one in Latin letters, such as @mia. Otherwise it is made up." : `Mentioned as @${handle.replace(/^@/, "") || auto || "…"}.`}
      />
      {kind === "human" && (
        <Select
          label="Role"
          value={role}
          onChange={(event) => setRole(event.target.value as PersonRole)}
          error={faultOf(act.error, "role")}
          hint={`Can ${ROLES.find((each) => each.role === role)!.about}.${me.role === "owner" ? "" : " Only owners can grant higher roles."}`}
        >
          {ROLES.filter((each) => me.role === "owner" || each.role === "member").map((each) => (
            <option key={each.role} value={each.role}>
              {each.label}
            </option>
          ))}
        </Select>
      )}
    </FormDialog>
  );
}

interface ChangeProps {
  who: Entity;
  onClose: () => void;
  onDone: () => Promise<void>;
}

function Rename({ who, onClose, onDone }: ChangeProps): ReactNode {
  const act = useAct();
  const [name, setName] = useState(who.name);
  const submit = async (): Promise<void> => {
    await patch("/api/entities/{entity_id}", { path: { entity_id: who.id }, body: { name } });
    await onDone();
    onClose();
  };
  return (
    <FormDialog title={`Rename ${who.name}`} action="Rename" act={act} disabled={!name.trim()} onSubmit={submit} onClose={onClose}>
      <TextField label="Name" autoFocus required maxLength={120} value={name} onChange={(event) => setName(event.target.value)} hint={`The handle stays @${who.handle}.`} />
    </FormDialog>
  );
}

function Role({ who, onClose, onDone }: ChangeProps): ReactNode {
  const act = useAct();
  const say = useToast();
  const [role, setRole] = useState(who.role as PersonRole);
  const submit = async (): Promise<void> => {
    await patch("/api/entities/{entity_id}", { path: { entity_id: who.id }, body: { role } });
    await onDone();
    say(`${who.name} is now ${role}.`);
    onClose();
  };
  return (
    <FormDialog title={`Role of ${who.name}`} action="Change role" act={act} onSubmit={submit} onClose={onClose}>
      <fieldset className={css.choices}>
        <legend className="visually-hidden">Role</legend>
        {ROLES.map((each) => (
          <label key={each.role} className={css.choice}>
            <input type="radio" name="role" checked={role === each.role} onChange={() => setRole(each.role)} />
            <span>
              <strong>{each.label}</strong>
              <span className={css.faint}> {each.about}</span>
            </span>
          </label>
        ))}
      </fieldset>
    </FormDialog>
  );
}
