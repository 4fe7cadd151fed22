import { keepPreviousData, useMutation, useQuery } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useState } from "react";
import { get, put, remove, type Schemas } from "../denizen/api";
import { Badge } from "../ui/Badge";
import { Button } from "../ui/Button";
import { Fault } from "../ui/Confirm";
import { Dialog, DialogFoot } from "../ui/Dialog";
import { Select } from "../ui/Field";
import { Loaded } from "../ui/States";
import { type Place, useProfiles, useStanceChanged } from "./asking";
import { History } from "./History";
import css from "./reflection.module.css";
import { SIDES, type State } from "./timeline";
import { TryMetaprompt } from "./TryMetaprompt";

type Standing = Schemas["StanceOut"] | Schemas["VoiceStanceOut"];

const PAGE = 100;

const MOODS = ["neutral", "empathetic", "patient", "encouraging", "focused", "analytical", "curious", "creative", "cautious"];
const CHOICES: Record<keyof State, string[]> = {
  mood: MOODS,
  user_skill: ["unknown", "novice", "intermediate", "advanced", "expert"],
  task_complexity: ["unknown", "simple", "moderate", "complex"],
};

/** How someone stands to a conversation; `more` stands under it. */
export function Stance({ place, more }: { place: Place; more?: (stance: Standing) => ReactNode }): ReactNode {
  const { root, path, key } = place;
  const [limit, setLimit] = useState(PAGE);
  const stance = useQuery({
    queryKey: key,
    queryFn: ({ signal }) => get(root, { path, signal }),
  });
  const past = useQuery({
    queryKey: [...key, "past", limit],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }) => {
      const [history, signals] = await Promise.all([
        get(`${root}/history` as const, { path, query: { limit }, signal }),
        get(`${root}/signals` as const, { path, query: { limit }, signal }),
      ]);
      return { runs: history.runs, signals: signals.signals, more: history.next !== null || signals.next !== null };
    },
  });
  return (
    <Loaded query={stance} lines={10}>
      {(told) => (
        <>
          <Now place={place} stance={told} />
          <Profile stance={told} />
          <section className={css.section} aria-label="Over time">
            <h2>Over time</h2>
            <Loaded query={past} lines={6}>
              {(found) => <History runs={found.runs} signals={found.signals} place={place} onMore={found.more && limit === PAGE ? () => setLimit(200) : undefined} />}
            </Loaded>
          </section>
          <TryMetaprompt place={place} />
          {more?.(told)}
        </>
      )}
    </Loaded>
  );
}

function Now({ place, stance }: { place: Place; stance: Standing }): ReactNode {
  const [dialog, setDialog] = useState<"set" | "reset" | null>(null);
  const imprints = Object.entries(stance.imprints);
  return (
    <section className={css.now} aria-label="State of mind">
      <header className={css.sectionHead}>
        <h2>
          {place.called && `In ${place.called} `}
          {place.name} is <em className={css.mood}>{stance.state.mood}</em>.
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
      {"reflects" in stance && !stance.reflects && <p className={css.faint}>Reflection is off: its state of mind changes only when someone sets it.</p>}
      {imprints.length > 0 && (
        <details className={css.imprints}>
          <summary>Values kept by metaprompts</summary>
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
      {dialog === "set" && <SetState place={place} stance={stance} onClose={() => setDialog(null)} />}
      {dialog === "reset" && <Reset place={place} onClose={() => setDialog(null)} />}
    </section>
  );
}

function Profile({ stance }: { stance: Standing }): ReactNode {
  const profiles = useProfiles();
  const found = profiles.data?.presets.find((each) => each.id === stance.profile.id);
  return (
    <section className={css.section} aria-label="Profile">
      <h2>Profile</h2>
      {stance.profile.id === null ? (
        <p className={css.faint}>{profiles.data?.presets.length === 0 ? "None: prompt profiles are off." : stance.profile.reason || "None chosen yet."}</p>
      ) : (
        <>
          <p className={css.why}>
            <Badge tone="accent">{found?.label || stance.profile.id}</Badge> <span>{stance.profile.reason}</span>
          </p>
          {found && found.text !== "" && (
            <details className={css.imprints}>
              <summary>Added instructions</summary>
              <pre className={css.prompt}>{found.text}</pre>
            </details>
          )}
        </>
      )}
    </section>
  );
}

function SetState({ place, stance, onClose }: { place: Place; stance: Standing; onClose: () => void }): ReactNode {
  const changed = useStanceChanged(place);
  const [wanted, setWanted] = useState<State>(stance.state);
  const change = useMutation({
    mutationFn: () => put(`${place.root}/state` as const, { path: place.path, body: wanted }),
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
        <p className={css.about}>Takes effect with its next answer. The history shows that you set it.</p>
        <Fault error={change.error} />
        <DialogFoot onCancel={onClose}>
          <Button type="submit" variant="primary" busy={change.isPending}>
            Set
          </Button>
        </DialogFoot>
      </form>
    </Dialog>
  );
}

function Reset({ place, onClose }: { place: Place; onClose: () => void }): ReactNode {
  const changed = useStanceChanged(place);
  const change = useMutation({
    mutationFn: () => remove(`${place.root}/state` as const, { path: place.path }),
    onSuccess: changed,
  });
  return (
    <Dialog title="Reset the state of mind?" onClose={onClose}>
      <p className={css.about}>Clears its mood, imprints and counters there. The history stays.</p>
      <Fault error={change.error} />
      <DialogFoot onCancel={onClose}>
        <Button variant="danger" busy={change.isPending} onClick={() => change.mutate(undefined, { onSuccess: onClose })}>
          Reset
        </Button>
      </DialogFoot>
    </Dialog>
  );
}
