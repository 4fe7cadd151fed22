/** A state of mind over time: drawn, and told. */
import { type ReactNode, useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import { useEntities } from "../denizen/hooks";
import { Badge } from "../ui/Badge";
import { Button } from "../ui/Button";
import { Time } from "../ui/Time";
import type { Place } from "./asking";
import css from "./reflection.module.css";
import { causeName, type Moment, moments, type Run, SIDES, type Signal, signalName, type State, stretches } from "./timeline";

const BEFORE: State = { mood: "neutral", user_skill: "unknown", task_complexity: "unknown" };

export function History({ runs, signals, place, onMore }: { runs: Run[]; signals: Signal[]; place: Place; onMore?: () => void }): ReactNode {
  const all = moments(runs, signals);
  if (all.length === 0) return <p className={css.faint}>No changes yet. When reflection is on, signals from people's messages and their effects appear here.</p>;
  return (
    <>
      <Chart all={all} />
      <ol className={css.moments} aria-label="Changes, newest first">
        {all.toReversed().map((each) => (
          <li key={"run" in each ? `run ${each.run.number}` : `signal ${each.signal.number}`} className={css.moment}>
            {"run" in each ? <RunLine run={each.run} before={stateBefore(all, each)} place={place} /> : <SignalLine signal={each.signal} place={place} />}
          </li>
        ))}
      </ol>
      {onMore && (
        <div>
          <Button small onClick={onMore}>
            Show more
          </Button>
        </div>
      )}
    </>
  );
}

function stateBefore(all: Moment[], moment: Moment): State {
  const earlier = all.slice(0, all.indexOf(moment)).findLast((each) => "run" in each);
  return earlier && "run" in earlier ? earlier.run.state : BEFORE;
}

const GOOD = new Set(["user_satisfied"]);

function SignalLine({ signal, place }: { signal: Signal; place: Place }): ReactNode {
  const entities = useEntities();
  const who = signal.person && (entities.data?.find((each) => each.id === signal.person)?.name ?? "Someone");
  return (
    <>
      <i className={css.dot} data-good={GOOD.has(signal.name) || undefined} aria-hidden />
      <div className={css.momentWords}>
        <p>
          {who ? (
            <>
              <strong>{who}</strong> seems {signalName(signal.name)}
            </>
          ) : (
            <strong>{signalName(signal.name)}</strong>
          )}
        </p>
        <p className={css.meta}>
          <span>{signal.rule}</span>
          <Time value={signal.at} />
          <Turn number={signal.cycle} place={place} />
        </p>
      </div>
    </>
  );
}

const OUTCOMES: Record<Run["outcome"], { word: string; tone: "good" | "plain" | "bad" }> = {
  changed: { word: "changed", tone: "good" },
  unchanged: { word: "no change", tone: "plain" },
  failed: { word: "failed", tone: "bad" },
};

function RunLine({ run, before, place }: { run: Run; before: State; place: Place }): ReactNode {
  const entities = useEntities();
  const who = run.by && (entities.data?.find((each) => each.id === run.by)?.name ?? "Someone");
  const changed = SIDES.filter(([side]) => run.state[side] !== before[side]);
  const outcome = OUTCOMES[run.outcome];
  return (
    <>
      <i className={css.dot} data-run aria-hidden />
      <div className={css.momentWords}>
        <p>
          {changed.length === 0 ? (
            <>Stays {run.state.mood}</>
          ) : (
            changed.map(([side, label], index) => (
              <span key={side}>
                {index > 0 && ", "}
                {label}: <strong>{run.state[side]}</strong>
              </span>
            ))
          )}{" "}
          {outcome.tone === "bad" && <Badge tone="bad">{outcome.word}</Badge>}
        </p>
        {run.reason && (
          <p className={css.reason} dir="auto">
            {run.reason}
          </p>
        )}
        <p className={css.meta}>
          {run.metaprompt && <span>{run.metaprompt}</span>}
          <span>{causeName(run.cause)}</span>
          {who && <span>{who}</span>}
          <Time value={run.at} />
          {run.cycle !== null && <Turn number={run.cycle} place={place} />}
        </p>
      </div>
    </>
  );
}

function Turn({ number, place }: { number: number; place: Place }): ReactNode {
  const { words, href } = place.turn(number);
  return href === undefined ? <span>{words}</span> : <Link href={href}>{words}</Link>;
}

/** A score in a word, for its colour. */
function feeling(score: number): "good" | "bad" | "even" {
  return score > 0.2 ? "good" : score < -0.2 ? "bad" : "even";
}

const LANE = 26;
const GAP = 6;
const NAME = 84;
const SCORES = 56;
const TIMES = 18;
const LETTER = 7.8;
const NARROWEST = 46;

/** As much of a word as has room. */
function cut(word: string, letters: number): string {
  if (word.length <= letters) return word;
  return letters > 2 ? `${word.slice(0, letters - 1)}…` : "";
}

const LABEL = 48;
const DAY = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });

/** Which moments are labelled, and how: no two nearer than `apart`; a new day by its date, others by another time of day. */
function timeLabels(times: Date[], apart: number): [number, string][] {
  const labels: [number, string][] = [];
  let [day, clock] = ["", ""];
  times.forEach((time, at) => {
    const last = labels.at(-1)?.[0];
    const isNew = DAY.format(time) !== day;
    if ((last !== undefined && at - last < apart) || (!isNew && CLOCK.format(time) === clock)) return;
    [day, clock] = [DAY.format(time), CLOCK.format(time)];
    labels.push([at, isNew ? day : clock]);
  });
  return labels;
}

/** How people felt as points between bad and good, and under it the state of mind in stretches. The list says the same. */
function Chart({ all: known }: { all: Moment[] }): ReactNode {
  const place = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const box = place.current!;
    const watch = new ResizeObserver(() => setWidth(box.clientWidth));
    watch.observe(box);
    return () => watch.disconnect();
  }, []);
  // The newest, as many as can be read.
  const all = known.slice(-Math.max(Math.floor((width - NAME) / NARROWEST) - 1, 3));
  const before = stateBefore(known, all[0]!);
  // How it is now has a column of its own at the end.
  const step = Math.max(width - NAME, 0) / (all.length + 1);
  const scored = all.some((each) => "signal" in each && each.signal.score !== null);
  const top = scored ? SCORES + GAP : 0;
  const bottom = top + SIDES.length * (LANE + GAP);
  const points = all.flatMap((each, at) => ("signal" in each && each.signal.score !== null ? [{ x: NAME + (at + 0.5) * step, y: SCORES / 2 - (each.signal.score * (SCORES - 14)) / 2, signal: each.signal }] : []));
  return (
    <div ref={place} className={css.drawn} aria-hidden>
      {width > 0 && (
        <svg width={width} height={bottom + TIMES}>
          {scored && (
            <>
              <text x={0} y={SCORES / 2} className={css.laneName}>
                Feeling
              </text>
              <text x={NAME - 8} y={8} className={css.end}>
                good
              </text>
              <text x={NAME - 8} y={SCORES - 8} className={css.end}>
                bad
              </text>
              <line x1={NAME} x2={width} y1={SCORES / 2} y2={SCORES / 2} className={css.middle} />
              <polyline points={points.map(({ x, y }) => `${x},${y}`).join(" ")} className={css.curve} />
              {points.map(({ x, y, signal }) => (
                <circle key={signal.number} cx={x} cy={y} r={4.5} className={css.point} data-feeling={feeling(signal.score ?? 0)}>
                  <title>{`${signalName(signal.name)}: ${signal.rule}`}</title>
                </circle>
              ))}
            </>
          )}
          {SIDES.map(([side, label], lane) => {
            const y = top + lane * (LANE + GAP);
            return (
              <g key={side}>
                <text x={0} y={y + LANE / 2} className={css.laneName}>
                  {label}
                </text>
                {stretches(all, side, before[side]).map(({ value, from, to }) => {
                  const wide = Math.max(((to === all.length ? to + 1 : to) - from) * step - 2, 1);
                  return (
                    <g key={from}>
                      <rect x={NAME + from * step} y={y} width={wide} height={LANE} rx={6} className={css.stretch} data-unknown={value === BEFORE[side] || undefined} />
                      <text x={NAME + from * step + 8} y={y + LANE / 2} className={css.stretchName} data-unknown={value === BEFORE[side] || undefined}>
                        {cut(value, Math.floor((wide - 14) / LETTER))}
                      </text>
                      <title>{value}</title>
                    </g>
                  );
                })}
              </g>
            );
          })}
          {timeLabels(all.map((each) => new Date(each.at)), Math.ceil(LABEL / step)).map(([at, label]) => (
            <text key={at} x={NAME + at * step} y={bottom + TIMES / 2} className={css.time}>
              {label}
            </text>
          ))}
        </svg>
      )}
    </div>
  );
}
