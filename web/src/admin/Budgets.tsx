import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { cost, costOf, daysAgo, dollars, short } from "../ui/amounts";
import { type Agent, get, patch, put, type Schemas } from "../denizen/api";
import { useAgent, useAgents } from "../denizen/hooks";
import { Avatar } from "../ui/Avatar";
import { Badge } from "../ui/Badge";
import { Button } from "../ui/Button";
import { classes } from "../ui/classes";
import { TextField } from "../ui/Field";
import { Gauge } from "../ui/Gauge";
import { Empty, Loaded, Skeleton } from "../ui/States";
import { useToast } from "../ui/Toast";
import { useAct } from "../ui/useAct";
import css from "./admin.module.css";
import { faultOf, FormDialog, Section } from "./parts";

type Limits = Schemas["Limits"];
type Used = Schemas["UsedOut"];
const FEW = 20;

/** What agents may use: all together, and each for itself. */
export default function Budgets(): ReactNode {
  const agents = useAgents();
  const [most, setMost] = useState(FEW);
  const budget = useQuery({ queryKey: ["budget"], queryFn: ({ signal }) => get("/api/organization/budget", { signal }) });
  const used = useQuery({
    queryKey: ["usage", "today", "agents"],
    queryFn: async ({ signal }) => {
      const told = await get("/api/usage", { query: { since: daysAgo(0), until: daysAgo(0), by: "agent", limit: 50 }, signal });
      return new Map(told.groups.map((each) => [each.key, each as Used]));
    },
  });
  if (budget.isPending || agents.isPending) return <Skeleton lines={9} />;
  return (
    <>
      <Loaded query={budget} lines={4}>
        {(told) => (
          <>
            <Whole limits={told.limits} used={told.today} />
            <Server limits={told.server ?? null} used={told.server_today ?? null} />
          </>
        )}
      </Loaded>
      <Section title="Each agent" about="An agent pauses when it reaches any of its limits. Messages sent meanwhile are kept.">
        <Loaded query={agents}>
          {(all) =>
            all.length === 0 ? (
              <Empty title="No agents yet." />
            ) : (
              <>
                <ul className={css.rows} aria-label="Budgets of agents">
                  {all.slice(0, most).map((agent) => (
                    <One key={agent.id} agent={agent} used={used.data?.get(agent.id)} />
                  ))}
                </ul>
                {all.length > most && (
                  <Button small onClick={() => setMost(most + 50)}>
                    Show more
                  </Button>
                )}
              </>
            )
          }
        </Loaded>
      </Section>
    </>
  );
}

function Whole({ limits, used }: { limits: Limits; used: Used }): ReactNode {
  const client = useQueryClient();
  const say = useToast();
  const [open, setOpen] = useState(false);
  return (
    <Section
      title="All agents together"
      about="A day ends at 00:00 UTC."
      action={
        <Button small onClick={() => setOpen(true)}>
          Change
        </Button>
      }
    >
      <Meters limits={limits} used={used} />
      {open && (
        <EditLimits
          title="Budget of all agents together"
          limits={limits}
          onClose={() => setOpen(false)}
          onSave={async (wanted) => {
            await put("/api/organization/budget", { body: wanted });
            await client.invalidateQueries({ queryKey: ["budget"] });
            say("Budget saved.");
          }}
        />
      )}
    </Section>
  );
}

function Server({ limits, used }: { limits: Limits | null; used: Schemas["ServerUsed"] | null }): ReactNode {
  const change = (
    <>
      Change it under <code>[budget]</code> in <code>denizen.toml</code> (<code>dollars_per_day</code>, <code>tokens_per_day</code>; 0 means no limit), then restart the server.
    </>
  );
  if (!limits || !(limits.dollars_per_day || limits.tokens_per_day))
    return (
      <Section title="This server" about={<>All organizations of this server together have no daily limit. {change}</>}>
        {null}
      </Section>
    );
  return (
    <Section title="This server" about={<>The daily limit of all organizations of this server together. {change}</>}>
      {used ? (
        <div className={css.meters}>
          {limits.dollars_per_day && (
            <Gauge label="Dollars today, whole server" value={used.dollars} max={limits.dollars_per_day} text={costOf(used, limits.dollars_per_day)} />
          )}
          {limits.tokens_per_day && <Gauge label="Tokens today, whole server" value={used.tokens} max={limits.tokens_per_day} />}
        </div>
      ) : (
        <p className={css.faint}>{inWordsOf(limits)}</p>
      )}
    </Section>
  );
}

function One({ agent, used }: { agent: Agent; used: Used | undefined }): ReactNode {
  const client = useQueryClient();
  const say = useToast();
  const detail = useAgent(agent.id);
  const [open, setOpen] = useState(false);
  const limits = detail.data ? limitsOf(detail.data.definition?.["budget"]) : undefined;
  return (
    <li className={css.row}>
      <Avatar name={agent.name} id={agent.id} kind="agent" />
      <span className={css.words}>
        <span className={css.name}>
          {agent.name} {detail.data?.resting && <Badge tone="warn">paused: budget used up</Badge>}
        </span>
        <span className={css.facts}>
          <span>{used ? `${cost(used)}, ${short(used.input_tokens + used.output_tokens)} tokens today` : "nothing used today"}</span>
          <span className={classes(limits === undefined && css.unknown)}>{inWordsOf(limits ?? limitsOf(undefined))}</span>
        </span>
      </span>
      <Button small aria-label={`Edit the budget of ${agent.name}`} disabled={limits === undefined} onClick={() => setOpen(true)}>
        Change
      </Button>
      {open && limits && (
        <EditLimits
          title={`Budget of ${agent.name}`}
          limits={limits}
          onClose={() => setOpen(false)}
          onSave={async (wanted) => {
            const limited = Object.values(wanted).some((value) => value !== null);
            await patch("/api/agents/{agent_id}", { path: { agent_id: agent.id }, body: { budget: limited ? { ...wanted } : null } });
            await client.invalidateQueries({ queryKey: ["agents"] });
            say(`Budget of ${agent.name} saved.`);
          }}
        />
      )}
    </li>
  );
}

const FIELDS: { name: keyof Limits; label: string; hint?: string }[] = [
  { name: "dollars_per_day", label: "Dollars per day", hint: "Works only for models with a known price." },
  { name: "tokens_per_day", label: "Tokens per day" },
  { name: "dollars", label: "Dollars in total" },
  { name: "tokens", label: "Tokens in total" },
];

function EditLimits({ title, limits, onSave, onClose }: { title: string; limits: Limits; onSave: (limits: Limits) => Promise<void>; onClose: () => void }): ReactNode {
  const act = useAct();
  const [typed, setTyped] = useState<Record<string, string>>(() => Object.fromEntries(FIELDS.map(({ name }) => [name, limits[name]?.toString() ?? ""])));
  const wrong = Object.fromEntries(FIELDS.map(({ name }) => [name, faultIn(typed[name]!, name.startsWith("tokens"))]));
  const save = async (): Promise<void> => {
    await onSave(Object.fromEntries(FIELDS.map(({ name }) => [name, typed[name]!.trim() ? Number(typed[name]) : null])) as unknown as Limits);
    onClose();
  };
  return (
    <FormDialog title={title} action="Save" act={act} disabled={Object.values(wrong).some(Boolean)} fields={FIELDS.map((each) => each.name)} onSubmit={save} onClose={onClose}>
      <p className={css.about}>Leave a field empty for no limit.</p>
      <div className={css.pair}>
        {FIELDS.map(({ name, label, hint }) => (
          <TextField
            key={name}
            label={label}
            inputMode="decimal"
            placeholder="no limit"
            value={typed[name]}
            onChange={(event) => setTyped({ ...typed, [name]: event.target.value })}
            error={wrong[name] ?? faultOf(act.error, name) ?? faultOf(act.error, `budget.${name}`)}
            hint={hint}
          />
        ))}
      </div>
    </FormDialog>
  );
}

function Meters({ limits, used }: { limits: Limits; used: Used }): ReactNode {
  const tokens = used.input_tokens + used.output_tokens;
  return (
    <div className={css.meters}>
      {limits.dollars_per_day ? (
        <Gauge label="Dollars today" value={used.dollars} max={limits.dollars_per_day} text={costOf(used, limits.dollars_per_day)} />
      ) : (
        <p className={css.faint}>{cost(used)} today, no daily limit.</p>
      )}
      {limits.tokens_per_day ? (
        <Gauge label="Tokens today" value={tokens} max={limits.tokens_per_day} />
      ) : (
        <p className={css.faint}>{short(tokens)} tokens today, no daily limit.</p>
      )}
      {(limits.dollars || limits.tokens) && (
        <p className={css.faint}>In total: {[limits.dollars && dollars(limits.dollars), limits.tokens && `${short(limits.tokens)} tokens`].filter(Boolean).join(", ")}.</p>
      )}
    </div>
  );
}

function limitsOf(budget: unknown): Limits {
  const given = (budget ?? {}) as Record<string, string | number | null | undefined>;
  const number = (name: string): number | null => (given[name] === undefined || given[name] === null ? null : Number(given[name]));
  return { dollars_per_day: number("dollars_per_day"), tokens_per_day: number("tokens_per_day"), dollars: number("dollars"), tokens: number("tokens") };
}

function inWordsOf(limits: Limits): string {
  const parts = [
    limits.dollars_per_day && `${dollars(limits.dollars_per_day)} per day`,
    limits.tokens_per_day && `${short(limits.tokens_per_day)} tokens per day`,
    limits.dollars && `${dollars(limits.dollars)} in total`,
    limits.tokens && `${short(limits.tokens)} tokens in total`,
  ].filter(Boolean);
  return parts.length ? `at most ${parts.join(", ")}` : "no own limit";
}

function faultIn(text: string, whole: boolean): string | undefined {
  if (!text.trim()) return undefined;
  const value = Number(text);
  if (!Number.isFinite(value) || value <= 0) return "Enter a number above zero.";
  return whole && !Number.isInteger(value) ? "Enter a whole number." : undefined;
}
