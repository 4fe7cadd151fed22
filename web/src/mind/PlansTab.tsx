import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import { CalendarClock, HeartPulse, MoreHorizontal, Pencil, Plus, Timer, Trash2 } from "lucide-react";
import { type ReactNode, useState } from "react";
import { get, remove, type Schemas } from "../denizen/api";
import { Badge } from "../ui/Badge";
import { Button } from "../ui/Button";
import { Confirm } from "../ui/Confirm";
import { Menu } from "../ui/Menu";
import { OutsideLabel } from "../ui/OutsideLabel";
import { Loaded, Skeleton } from "../ui/States";
import { Time } from "../ui/Time";
import { useToast } from "../ui/Toast";
import { useChange } from "./asking";
import css from "./mind.module.css";
import { GoalDialog, NoteDialog, PlanDialog } from "./PlanDialogs";
import { inPlainWords } from "./schedules";
import { useMind } from "./watch";

type Goal = Schemas["GoalOut"];
type Note = Schemas["NoteOut"];
type Plan = Schemas["PlanOut"];

/** What it wants, what it has written down, and when it will be woken: all at once, so that nothing moves. */
export function PlansTab(): ReactNode {
  const { agent } = useMind();
  const asked = [usePlans(agent.id), useGoals(agent.id), useNotes(agent.id)];
  if (asked.some((each) => each.isPending)) return <Skeleton lines={9} />;
  return (
    <>
      <Plans />
      <Goals />
      <Notes />
    </>
  );
}

function usePlans(id: string): UseQueryResult<{ plans: Plan[] }> {
  return useQuery({
    queryKey: ["agents", id, "plans"],
    queryFn: ({ signal }) => get("/api/agents/{agent_id}/plans", { path: { agent_id: id }, signal }),
  });
}

function useGoals(id: string): UseQueryResult<{ goals: Goal[] }> {
  return useQuery({
    queryKey: ["agents", id, "goals"],
    queryFn: ({ signal }) => get("/api/agents/{agent_id}/goals", { path: { agent_id: id }, signal }),
  });
}

function useNotes(id: string): UseQueryResult<{ notes: Note[] }> {
  return useQuery({
    queryKey: ["agents", id, "notes"],
    queryFn: ({ signal }) => get("/api/agents/{agent_id}/notes", { path: { agent_id: id }, signal }),
  });
}

function Plans(): ReactNode {
  const { agent } = useMind();
  const [edited, setEdited] = useState<Plan | "new" | null>(null);
  const plans = usePlans(agent.id);
  return (
    <Part title="Plans" add="Add a plan" onAdd={() => setEdited("new")}>
      <Loaded query={plans}>
        {(found) => (
          <List empty="No plans or timers. Only messages wake it." count={found.plans.length}>
            {found.plans.map((plan) => (
              <PlanRow key={plan.id} plan={plan} onEdit={() => setEdited(plan)} />
            ))}
          </List>
        )}
      </Loaded>
      {edited && <PlanDialog plan={edited === "new" ? null : edited} onClose={() => setEdited(null)} />}
    </Part>
  );
}

const PLAN_ICONS = { plan: <CalendarClock size={17} />, timer: <Timer size={17} />, heartbeat: <HeartPulse size={17} /> };
const PLAN_NAMES = { plan: "Plan", timer: "Timer", heartbeat: "Heartbeat" };

function PlanRow({ plan, onEdit }: { plan: Plan; onEdit: () => void }): ReactNode {
  const { agent } = useMind();
  const drop = useChange(agent.id, () => remove("/api/agents/{agent_id}/plans/{name}", { path: { agent_id: agent.id, name: plan.kind === "timer" ? plan.id : plan.name } }));
  const name = plan.name || PLAN_NAMES[plan.kind];
  return (
    <Item
      name={name}
      icon={PLAN_ICONS[plan.kind]}
      onEdit={plan.kind === "plan" ? onEdit : undefined}
      // A heartbeat is part of the definition.
      onDrop={plan.kind === "heartbeat" ? undefined : () => drop.mutateAsync()}
      without={`${agent.name} is no longer woken by it.`}
      dropped={`${name} deleted.`}
    >
      <p className={css.itemTitle}>
        {name} {plan.state !== "waiting" && <Badge tone={plan.state === "failed" ? "bad" : "warn"}>{plan.state}</Badge>}
      </p>
      <p className={css.itemText}>{plan.instruction}</p>
      <p className={css.meta}>
        <span>
          next <Time value={plan.next_run} />, <Time value={plan.next_run} form="ago" />
        </span>
        <span>{inPlainWords(plan.schedule)}</span>
        {plan.outside && <OutsideLabel />}
        {plan.last_run && (
          <span>
            last <Time value={plan.last_run} />
          </span>
        )}
      </p>
    </Item>
  );
}

const GOAL_TONES = { active: "accent", "long-term": "plain", paused: "warn", done: "good" } as const;

function Goals(): ReactNode {
  const { agent } = useMind();
  const [edited, setEdited] = useState<Goal | "new" | null>(null);
  const goals = useGoals(agent.id);
  const drop = useChange(agent.id, (number: number) => remove("/api/agents/{agent_id}/goals/{number}", { path: { agent_id: agent.id, number } }));
  return (
    <Part title="Goals" add="Add a goal" onAdd={() => setEdited("new")}>
      <Loaded query={goals}>
        {(found) => (
          <List empty="No goals yet." count={found.goals.length}>
            {found.goals.map((goal) => (
              <Item key={goal.number} name={goal.text} without={`${agent.name} no longer pursues it.`} onEdit={() => setEdited(goal)} onDrop={() => drop.mutateAsync(goal.number)} dropped="Goal deleted.">
                <p className={css.itemTitle} data-done={goal.status === "done" || undefined}>
                  {goal.text}
                </p>
                <p className={css.meta}>
                  <Badge tone={GOAL_TONES[goal.status]}>{goal.status}</Badge>
                  {goal.priority !== "normal" && <span>{goal.priority} priority</span>}
                  {goal.outside && <OutsideLabel />}
                </p>
              </Item>
            ))}
          </List>
        )}
      </Loaded>
      {edited && <GoalDialog goal={edited === "new" ? null : edited} onClose={() => setEdited(null)} />}
    </Part>
  );
}

function Notes(): ReactNode {
  const { agent } = useMind();
  const [edited, setEdited] = useState<Note | "new" | null>(null);
  const notes = useNotes(agent.id);
  const drop = useChange(agent.id, (key: string) => remove("/api/agents/{agent_id}/notes/{key}", { path: { agent_id: agent.id, key } }));
  return (
    <Part title="Notes" add="Add a note" onAdd={() => setEdited("new")}>
      <Loaded query={notes}>
        {(found) => (
          <List empty="No notes yet." count={found.notes.length}>
            {found.notes.map((note) => (
              <Item key={note.key} name={note.key} without={`${agent.name} no longer has it in mind.`} onEdit={() => setEdited(note)} onDrop={() => drop.mutateAsync(note.key)} dropped="Note deleted.">
                <p className={css.itemTitle}>{note.key}</p>
                <p className={css.itemText}>{note.text}</p>
                {note.outside && (
                  <p className={css.meta}>
                    <OutsideLabel />
                  </p>
                )}
              </Item>
            ))}
          </List>
        )}
      </Loaded>
      {edited && <NoteDialog note={edited === "new" ? null : edited} onClose={() => setEdited(null)} />}
    </Part>
  );
}

function Part({ title, add, onAdd, children }: { title: string; add: string; onAdd: () => void; children: ReactNode }): ReactNode {
  return (
    <section className={css.section} aria-label={title}>
      <div className={css.sectionHead}>
        <h2>{title}</h2>
        <Button small icon={<Plus size={15} />} onClick={onAdd}>
          {add}
        </Button>
      </div>
      {children}
    </section>
  );
}

function List({ empty, count, children }: { empty: string; count: number; children: ReactNode }): ReactNode {
  return count === 0 ? <p className={css.nothing}>{empty}</p> : <ul className={css.items}>{children}</ul>;
}

interface ItemProps {
  name: string;
  /** What will be true when it is deleted. */
  without: string;
  icon?: ReactNode;
  onEdit?: () => void;
  onDrop?: () => Promise<unknown>;
  dropped: string;
  children: ReactNode;
}

function Item({ name, without, icon, onEdit, onDrop, dropped, children }: ItemProps): ReactNode {
  const say = useToast();
  const [asking, setAsking] = useState(false);
  const items = [
    ...(onEdit ? [{ label: "Edit", icon: <Pencil size={16} />, onSelect: onEdit }] : []),
    ...(onDrop ? [{ label: "Delete", icon: <Trash2 size={16} />, danger: true, onSelect: () => setAsking(true) }] : []),
  ];
  return (
    <li className={css.item}>
      {icon && <span className={css.itemIcon}>{icon}</span>}
      <div className={css.itemBody}>{children}</div>
      {items.length > 0 && <Menu label={`Actions for ${name}`} icon={<MoreHorizontal size={18} />} items={items} />}
      {asking && onDrop && (
        <Confirm title={`Delete “${name}”?`} action="Delete" onClose={() => setAsking(false)} onConfirm={() => onDrop().then(() => say(dropped))}>
          <p>{without} This cannot be undone.</p>
        </Confirm>
      )}
    </li>
  );
}
