import { UserMinus, UserPlus } from "lucide-react";
import { type ReactNode, useState } from "react";
import { Link, useLocation } from "wouter";
import { get, type Member, patch, post, remove } from "../denizen/api";
import { useEntities, useMe } from "../denizen/hooks";
import { useLive, useStore } from "../denizen/live";
import type { SpaceState } from "../denizen/store";
import { useAhead } from "../ui/ahead";
import { Avatar } from "../ui/Avatar";
import { Button, IconButton } from "../ui/Button";
import { classes } from "../ui/classes";
import { Confirm } from "../ui/Confirm";
import { Dialog } from "../ui/Dialog";
import { inputClass, Select } from "../ui/Field";
import { useActWithToast } from "../ui/useAct";
import css from "./spaces.module.css";

/** What an agent attends to, in words. */
export const ATTENTION: Record<Member["attention"], string> = {
  all: "gets all messages",
  mentions: "gets mentions only",
  none: "gets no messages",
};

/** Who is in a space: bringing someone in, removing, and what agents attend to. */
export function Members({ space, onClose }: { space: SpaceState; onClose: () => void }): ReactNode {
  const me = useMe();
  const { act, busy } = useActing(space.info.id);
  const [removed, setRemoved] = useState<Member | null>(null);
  const path = { space_id: space.info.id };
  const mine = space.info.members.find((each) => each.id === me.id)?.role;
  const runs = mine === "owner" || mine === "admin" || me.role === "owner" || me.role === "admin";
  return (
    <Dialog title={`In ${space.info.name}`} onClose={onClose} wide>
      <ul className={css.people} aria-label="Members">
        {space.info.members.map((each) => (
          <li key={each.id} className={css.person}>
            <MemberAvatar member={each} />
            <span className={css.personName}>
              {each.kind === "agent" ? <Link href={`/agents/${each.id}/now`}>{each.name}</Link> : each.name}
              <span className={css.faint}>
                @{each.handle}
                {each.role !== "member" && ` · ${each.role}`}
              </span>
              {each.namesake && <span className={css.namesake}>Same name as another member</span>}
            </span>
            {each.kind === "agent" && (
              <Attention
                member={each}
                busy={busy}
                onAttend={(attention) => act(() => patch("/api/spaces/{space_id}/members/{entity_id}", { path: { ...path, entity_id: each.id }, body: { attention } }))}
              />
            )}
            {each.id !== me.id && (each.kind !== "human" || runs) && (
              <IconButton
                label={`Remove ${each.name}`}
                icon={<UserMinus size={16} />}
                disabled={busy}
                onClick={() => setRemoved(each)}
              />
            )}
          </li>
        ))}
      </ul>
      {removed && (
        <Confirm
          title={`Remove ${removed.name}?`}
          action="Remove"
          onClose={() => setRemoved(null)}
          onConfirm={() => act(() => remove("/api/spaces/{space_id}/members/{entity_id}", { path: { ...path, entity_id: removed.id } }))}
        >
          <p>
            {removed.name} gets no more messages of {space.info.name}
            {removed.kind === "human" && " and no longer sees it"}, until a member adds {removed.name} again.
          </p>
        </Confirm>
      )}
      <BringIn space={space} busy={busy} onAdd={(entity) => act(() => post("/api/spaces/{space_id}/members", { path, body: { entity, attention: "all", role: "member" } }))} />
    </Dialog>
  );
}

function MemberAvatar({ member }: { member: Member }): ReactNode {
  const status = useLive((state) => state.presence[member.id]?.status);
  return <Avatar name={member.name} id={member.id} kind={member.kind} status={member.kind === "agent" ? status : undefined} />;
}

function Attention({ member, busy, onAttend }: { member: Member; busy: boolean; onAttend: (attention: Member["attention"]) => Promise<void> }): ReactNode {
  const [attention, ahead] = useAhead(member.attention);
  return (
    <select
      aria-label={`Messages that ${member.name} gets`}
      className={classes(inputClass, css.attention)}
      value={attention}
      disabled={busy}
      onChange={(event) => {
        const wanted = event.target.value as typeof attention;
        ahead(wanted, onAttend(wanted));
      }}
    >
      {Object.entries(ATTENTION).map(([value, label]) => (
        <option key={value} value={value}>
          {label}
        </option>
      ))}
    </select>
  );
}

function BringIn({ space, busy, onAdd }: { space: SpaceState; busy: boolean; onAdd: (entity: string) => Promise<void> }): ReactNode {
  const entities = useEntities();
  const [chosen, setChosen] = useState("");
  const here = new Set(space.info.members.map((each) => each.id));
  const others = entities.data?.filter((each) => !here.has(each.id)) ?? [];
  if (entities.data && others.length === 0) return <p className={css.faint}>Everyone is already a member.</p>;
  return (
    <form
      className={css.bringIn}
      onSubmit={(event) => {
        event.preventDefault();
        void onAdd(chosen).then(() => setChosen(""));
      }}
    >
      <Select label="Add a member" value={chosen} onChange={(event) => setChosen(event.target.value)}>
        <option value="">Choose…</option>
        {others.map((each) => (
          <option key={each.id} value={each.id}>
            {each.name} (@{each.handle})
          </option>
        ))}
      </Select>
      <Button type="submit" icon={<UserPlus size={16} />} busy={busy} disabled={!chosen}>
        Add
      </Button>
    </form>
  );
}

/** Leaving a space oneself. */
export function Leave({ space, onClose }: { space: SpaceState; onClose: () => void }): ReactNode {
  const me = useMe();
  const store = useStore();
  const [, go] = useLocation();
  const { busy, run } = useActWithToast();
  const leave = (): void => {
    void run(async () => {
      await remove("/api/spaces/{space_id}/members/{entity_id}", { path: { space_id: space.info.id, entity_id: me.id } });
      onClose();
      go("/", { replace: true });
      store.dispatch({ type: "space.left", space: space.info.id });
    });
  };
  const footer = (
    <>
      <Button variant="quiet" onClick={onClose}>
        Stay
      </Button>
      <Button variant="danger" busy={busy} onClick={leave}>
        Leave
      </Button>
    </>
  );
  return (
    <Dialog title={`Leave ${space.info.name}?`} onClose={onClose} footer={footer}>
      <p>You will not see this space until a member adds you again.</p>
    </Dialog>
  );
}

/** Runs a change of the members, and looks at the space again. */
function useActing(id: string): { act: (work: () => Promise<unknown>) => Promise<void>; busy: boolean } {
  const store = useStore();
  const { busy, run } = useActWithToast();
  const act = async (work: () => Promise<unknown>): Promise<void> => {
    await run(async () => {
      await work();
      store.dispatch({ type: "space", space: await get("/api/spaces/{space_id}", { path: { space_id: id } }) });
    });
  };
  return { act, busy };
}
