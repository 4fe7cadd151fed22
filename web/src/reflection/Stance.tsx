import { keepPreviousData, useMutation, useQuery } from "@tanstack/react-query";
import { ArrowLeft } from "lucide-react";
import { type FormEvent, type ReactNode, useState } from "react";
import { Link } from "wouter";
import { get, put, remove, type Schemas } from "../denizen/api";
import { Badge } from "../ui/Badge";
import { Button } from "../ui/Button";
import { Dialog, DialogFoot } from "../ui/Dialog";
import { Select, TextField } from "../ui/Field";
import { Loaded } from "../ui/States";
import { useToast } from "../ui/Toast";
import { type Place, useProfiles, useStanceChanged } from "./asking";
import { Fault } from "./Fault";
import { History } from "./History";
import css from "./reflection.module.css";
import { settingsOf, SIDES, type State } from "./timeline";
import { TryMetaprompt } from "./TryMetaprompt";

type StanceOut = Schemas["StanceOut"];

const PAGE = 100;

const MOODS = ["neutral", "empathetic", "patient", "encouraging", "focused", "analytical", "curious", "creative", "cautious"];
const CHOICES: Record<keyof State, string[]> = {
  mood: MOODS,
  user_skill: ["unknown", "novice", "intermediate", "advanced", "expert"],
  task_complexity: ["unknown", "simple", "moderate", "complex"],
};

/** How an agent stands to one conversation. */
export function Stance({ agent, name, space, called, at }: Place & { name: string; called: string; at: string }): ReactNode {
  const path = { agent_id: agent, conversation_id: space };
  const [limit, setLimit] = useState(PAGE);
  const stance = useQuery({
    queryKey: ["stance", agent, space],
    queryFn: ({ signal }) => get("/api/agents/{agent_id}/stances/{conversation_id}", { path, signal }),
  });
  const past = useQuery({
    queryKey: ["stance", agent, space, "past", limit],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }) => {
      const [history, signals] = await Promise.all([
        get("/api/agents/{agent_id}/stances/{conversation_id}/history", { path, query: { limit }, signal }),
        get("/api/agents/{agent_id}/stances/{conversation_id}/signals", { path, query: { limit }, signal }),
      ]);
      return { runs: history.runs, signals: signals.signals, more: history.next !== null || signals.next !== null };
    },
  });
  return (
    <>
      <p>
        <Link href={`${at}/stance`} className={css.back}>
          <ArrowLeft size={15} aria-hidden /> All conversations
        </Link>
      </p>
      <Loaded query={stance} lines={10}>
        {(told) => (
          <>
            <Now agent={agent} name={name} called={called} stance={told} />
            <Profile stance={told} />
            <section className={css.section} aria-label="Over time">
              <h2>Over time</h2>
              <Loaded query={past} lines={6}>
                {(found) => <History runs={found.runs} signals={found.signals} at={at} onMore={found.more && limit === PAGE ? () => setLimit(200) : undefined} />}
              </Loaded>
            </section>
            <TryMetaprompt agent={agent} space={space} />
            <Settings key={JSON.stringify(told.settings)} agent={agent} stance={told} />
          </>
        )}
      </Loaded>
    </>
  );
}

function Now({ agent, name, called, stance }: { agent: string; name: string; called: string; stance: StanceOut }): ReactNode {
  const [dialog, setDialog] = useState<"set" | "reset" | null>(null);
  const imprints = Object.entries(stance.imprints);
  return (
    <section className={css.now} aria-label="State of mind">
      <header className={css.sectionHead}>
        <h2>
          In {called || "this conversation"} {name} is <em className={css.mood}>{stance.state.mood}</em>.
        </h2>
        <div className={css.buttons}>
          <Button small onClick={() => setDialog("set")}>
            Set by hand
          </Button>
          <Button small variant="quiet" onClick={() => setDialog("reset")}>
            Reset
          </Button>
        </div>
      </header>
      <dl className={css.facts}>
        {SIDES.map(([side, label]) => (
          <div key={side}>
            <dt>{label}</dt>
            <dd data-unknown={["unknown", "neutral"].includes(stance.state[side]) || undefined}>{stance.state[side]}</dd>
          </div>
        ))}
        <div>
          <dt>Turns</dt>
          <dd>{stance.turns}</dd>
        </div>
      </dl>
      {imprints.length > 0 && (
        <details className={css.imprints}>
          <summary>What its metaprompts keep of it</summary>
          <dl>
            {imprints.map(([key, text]) => (
              <div key={key}>
                <dt>{key}</dt>
                <dd dir="auto">{text}</dd>
              </div>
            ))}
          </dl>
        </details>
      )}
      {dialog === "set" && <SetState agent={agent} stance={stance} onClose={() => setDialog(null)} />}
      {dialog === "reset" && <Reset agent={agent} stance={stance} onClose={() => setDialog(null)} />}
    </section>
  );
}

function Profile({ stance }: { stance: StanceOut }): ReactNode {
  const profiles = useProfiles();
  const found = profiles.data?.presets.find((each) => each.id === stance.profile.id);
  return (
    <section className={css.section} aria-label="Profile">
      <h2>Profile</h2>
      {stance.profile.id === null ? (
        <p className={css.faint}>{profiles.data?.presets.length === 0 ? "None: this house has no file of presets." : stance.profile.reason || "None was chosen yet."}</p>
      ) : (
        <>
          <p className={css.why}>
            <Badge tone="accent">{found?.label || stance.profile.id}</Badge> <span>{stance.profile.reason}</span>
          </p>
          {found && found.text !== "" && (
            <details className={css.imprints}>
              <summary>What it adds to the agent's instructions</summary>
              <pre className={css.prompt}>{found.text}</pre>
            </details>
          )}
        </>
      )}
    </section>
  );
}

function SetState({ agent, stance, onClose }: { agent: string; stance: StanceOut; onClose: () => void }): ReactNode {
  const changed = useStanceChanged({ agent, space: stance.space_id });
  const [wanted, setWanted] = useState<State>(stance.state);
  const change = useMutation({
    mutationFn: () => put("/api/agents/{agent_id}/stances/{conversation_id}/state", { path: { agent_id: agent, conversation_id: stance.space_id }, body: wanted }),
    onSuccess: changed,
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    change.mutate(undefined, { onSuccess: onClose });
  };
  return (
    <Dialog title="Set the state of mind" onClose={onClose}>
      <form className={css.form} onSubmit={submit}>
        {SIDES.map(([side, label]) => (
          <Select key={side} label={label} value={wanted[side]} onChange={(event) => setWanted({ ...wanted, [side]: event.target.value })}>
            {CHOICES[side].map((each) => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </Select>
        ))}
        <p className={css.about}>It is told with its next cycle. That it was you stands in the history.</p>
        <Fault error={change.error} />
        <DialogFoot>
          <Button variant="quiet" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" variant="primary" busy={change.isPending}>
            Set
          </Button>
        </DialogFoot>
      </form>
    </Dialog>
  );
}

function Reset({ agent, stance, onClose }: { agent: string; stance: StanceOut; onClose: () => void }): ReactNode {
  const changed = useStanceChanged({ agent, space: stance.space_id });
  const change = useMutation({
    mutationFn: () => remove("/api/agents/{agent_id}/stances/{conversation_id}/state", { path: { agent_id: agent, conversation_id: stance.space_id } }),
    onSuccess: changed,
  });
  return (
    <Dialog title="Reset the state of mind?" onClose={onClose}>
      <p className={css.about}>It has no mood there any more, no imprints, and nothing is counted of anybody. What happened so far stays in the history.</p>
      <Fault error={change.error} />
      <DialogFoot>
        <Button variant="quiet" onClick={onClose}>
          Cancel
        </Button>
        <Button variant="danger" busy={change.isPending} onClick={() => change.mutate(undefined, { onSuccess: onClose })}>
          Reset
        </Button>
      </DialogFoot>
    </Dialog>
  );
}

/** What holds in this conversation instead of the agent's settings. */
function Settings({ agent, stance }: { agent: string; stance: StanceOut }): ReactNode {
  const say = useToast();
  const profiles = useProfiles();
  const changed = useStanceChanged({ agent, space: stance.space_id });
  const before = stance.settings;
  const own = (before["reflection"] ?? {}) as { profile?: string };
  const [preset, setPreset] = useState(String(before["preset"] ?? ""));
  const [mode, setMode] = useState(String(before["mode"] ?? ""));
  const [profile, setProfile] = useState(own.profile ?? "");
  const change = useMutation({
    mutationFn: (body: Schemas["SetStance"]) => put("/api/agents/{agent_id}/stances/{conversation_id}/settings", { path: { agent_id: agent, conversation_id: stance.space_id }, body }),
    onSuccess: async () => {
      say("It holds from the next turn on.");
      await changed();
    },
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    change.mutate(settingsOf(before, preset, mode, profile));
  };
  const others = Object.keys(own).filter((each) => each !== "profile");
  return (
    <section className={css.section} aria-label="Settings of this conversation">
      <h2>Settings of this conversation</h2>
      <p className={css.about}>What is set here is stronger than what the agent has for all its conversations.</p>
      <form className={css.form} onSubmit={submit}>
        <div className={css.fields}>
          <Select label="Profile" value={preset} onChange={(event) => setPreset(event.target.value)}>
            <option value="">As the rules say</option>
            {including(profiles.data?.presets.map((each) => each.id), preset).map((each) => (
              <option key={each} value={each}>
                {profiles.data?.presets.find((known) => known.id === each)?.label || each}
              </option>
            ))}
          </Select>
          <Select label="Reflection" value={profile} onChange={(event) => setProfile(event.target.value)}>
            <option value="">As the agent has it</option>
            {including(profiles.data?.profiles, profile).map((each) => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </Select>
          <TextField label="Mode" value={mode} placeholder="the agent's" onChange={(event) => setMode(event.target.value)} />
        </div>
        {others.length > 0 && <p className={css.about}>Also set here, and kept: {others.join(", ")} of reflection.</p>}
        <Fault error={change.error} />
        <div className={css.buttons}>
          <Button type="submit" variant="primary" busy={change.isPending}>
            Save
          </Button>
          {Object.keys(before).length > 0 && (
            <Button variant="quiet" disabled={change.isPending} onClick={() => change.mutate({})}>
              Take them away
            </Button>
          )}
        </div>
      </form>
    </section>
  );
}

/** The choices, with the one that is chosen, also before they are known. */
function including(choices: string[] | undefined, chosen: string): string[] {
  const known = choices ?? [];
  return chosen === "" || known.includes(chosen) ? known : [...known, chosen];
}
