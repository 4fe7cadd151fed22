import { Ban, ListChecks, Maximize2, Pencil, RotateCw, ScanText, Smile } from "lucide-react";
import { type ReactNode, useState } from "react";
import { post, type Reply, type Round, type VoiceStance } from "../denizen/api";
import { useLive } from "../denizen/live";
import { keyOf } from "../denizen/panels";
import { whyWords } from "../reflection/timeline";
import { dollars, percent, short } from "../ui/amounts";
import { IconButton } from "../ui/Button";
import { CopyButton } from "../ui/Code";
import { Dialog } from "../ui/Dialog";
import { Markdown } from "../ui/Markdown";
import { ContextDialog } from "./ContextDialog";
import css from "./panel.module.css";
import { coloured, useAround } from "./usePanel";
import { phaseWords, stateWords } from "./words";

/** What one voice answers in a round, as it says it. `isLast`: nothing was asked since. */
export function Card({ round, reply, isLast }: { round: Round; reply: Reply; isLast: boolean }): ReactNode {
  const { panel, advisors, minds, onMind, onEdit, act } = useAround();
  const [open, setOpen] = useState<"full" | "context" | null>(null);
  const said = useSaid(round, reply);
  const advisor = advisors.get(reply.advisor);
  const colour = advisor?.colour;
  const phase = phaseWords(reply.phase);
  const path = { panel_id: panel.id, round_id: round.id };
  const over = reply.completed;
  const mind = minds.get(reply.advisor);
  return (
    <article className={css.card} ref={coloured(colour)} data-state={reply.state} aria-label={reply.name} aria-busy={reply.state === "running"}>
      <header className={css.cardHead}>
        <span className={css.swatch} aria-hidden />
        <div className={css.who}>
          <h3>{reply.name}</h3>
          {phase && <span className={css.phase}>{phase}</span>}
          {mind && isLast && round.kind === "ask" && <Mood mind={mind} />}
        </div>
        <State reply={reply} said={said.text !== ""} />
      </header>
      <Body round={round} reply={reply} />
      <footer className={css.cardFoot}>
        <span className={css.spent}>{over && reply.state === "done" && spent(reply)}</span>
        {/* First: the others stay where they are when it comes. */}
        {mind && <IconButton label={`State of mind of ${reply.name}`} icon={<Smile size={15} />} onClick={() => onMind(reply.advisor)} />}
        {!over && (
          <IconButton
            label={`Stop ${reply.name}`}
            icon={<Ban size={15} />}
            onClick={() => void act(() => post("/api/panels/{panel_id}/rounds/{round_id}/cancel", { path, body: { advisor: reply.advisor } }))}
          />
        )}
        {(reply.state === "failed" || reply.state === "cancelled") && (
          <IconButton
            label={`Ask ${reply.name} again`}
            icon={<RotateCw size={15} />}
            onClick={() => void act(() => post("/api/panels/{panel_id}/rounds/{round_id}/retry", { path, body: { advisor: reply.advisor } }))}
          />
        )}
        {said.text && <CopyButton text={said.text} label={`Copy the reply of ${reply.name}`} />}
        {reply.model !== null && <IconButton label={`Context of ${reply.name}`} icon={<ScanText size={15} />} onClick={() => setOpen("context")} />}
        {advisor && <IconButton label={`Edit ${reply.name}`} icon={<Pencil size={15} />} onClick={() => onEdit(advisor, "advisor")} />}
        {advisor && <IconButton label={`Assertions of ${reply.name}`} icon={<ListChecks size={15} />} onClick={() => onEdit(advisor, "assertions")} />}
        <IconButton label={`Show ${reply.name} full screen`} icon={<Maximize2 size={15} />} onClick={() => setOpen("full")} />
      </footer>
      {open === "full" && (
        <Dialog full title={reply.name} onClose={() => setOpen(null)}>
          <div className={css.full} ref={coloured(colour)}>
            <p className={css.fullHead}>
              <span className={css.swatch} aria-hidden />
              {phase && <span className={css.phase}>{phase}</span>}
              <State reply={reply} said={said.text !== ""} />
            </p>
            <Body round={round} reply={reply} />
          </div>
        </Dialog>
      )}
      {open === "context" && <ContextDialog round={round} reply={reply} onClose={() => setOpen(null)} />}
    </article>
  );
}

/** What was said and thought, or so far. */
export function useSaid(round: Round, reply: Reply): { text: string; thinking: string } {
  const key = keyOf(round.id, reply.advisor, reply.part);
  const speaking = useLive((state) => state.panels[round.panel]?.speaking[key]);
  if (reply.state === "running") return { text: speaking?.text ?? "", thinking: speaking?.thinking ?? "" };
  return { text: reply.content, thinking: reply.thinking ?? "" };
}

/** The mood that it has now, where it has one. */
function Mood({ mind }: { mind: VoiceStance }): ReactNode {
  const { mood } = mind.state;
  if (mood === "neutral") return null;
  return (
    <span className={css.mood} title={whyWords(mind.last) || undefined}>
      {mood}
    </span>
  );
}

/** How it stands. That it is done can be seen: its words stand there. */
function State({ reply, said }: { reply: Reply; said: boolean }): ReactNode {
  return (
    <span className={reply.state === "done" ? "visually-hidden" : css.state} data-state={reply.state}>
      {stateWords(reply.state, said)}
    </span>
  );
}

function Body({ round, reply }: { round: Round; reply: Reply }): ReactNode {
  const { known } = useAround();
  const { text, thinking } = useSaid(round, reply);
  const growing = reply.state === "running";
  return (
    <div className={css.cardBody}>
      {thinking && <Thinking text={thinking} growing={growing && !text} />}
      {reply.error && reply.state === "failed" && (
        <p className={css.failure} role="alert">
          {reply.error.message || "No answer."} <code>{reply.error.code}</code>
        </p>
      )}
      {reply.part === "vote" && reply.result ? <Vote result={reply.result} /> : text && <Markdown text={text} known={known} growing={growing} />}
      {growing && !text && <Dots />}
      <Checks check={round.checks[reply.advisor]} />
    </div>
  );
}

/** What a reasoning model thought: on demand. */
export function Thinking({ text, growing }: { text: string; growing: boolean }): ReactNode {
  return (
    <details className={css.thinking}>
      <summary>{growing ? "Thinking…" : "Thinking"}</summary>
      <p>{text}</p>
    </details>
  );
}

/** Where text will be. */
export function Dots(): ReactNode {
  return (
    <span className={css.dots} aria-hidden>
      <i />
      <i />
      <i />
    </span>
  );
}

function Vote({ result }: { result: Record<string, unknown> }): ReactNode {
  const sure = typeof result["confidence"] === "number" ? result["confidence"] : 0;
  return (
    <div className={css.vote}>
      <p className={css.position}>{String(result["position"] ?? "")}</p>
      <p className={css.sure}>
        <span className={css.track} aria-hidden>
          <span ref={(element) => element?.style.setProperty("width", `${sure * 100}%`)} />
        </span>
        {percent(sure)} sure
      </p>
      <p>{String(result["reason"] ?? "")}</p>
    </div>
  );
}

interface Verdict {
  expected: string;
  passed: boolean;
  why: string;
}

/** Whether a reply meets the assertions of its advisor. */
function Checks({ check }: { check: Reply | undefined }): ReactNode {
  if (check === undefined || check.state === "cancelled") return null;
  if (check.state === "failed") return <p className={css.checks}>Check failed: {check.error?.message}</p>;
  if (check.result === null) return <p className={css.checks}>Checking the answer…</p>;
  const verdicts = (check.result["verdicts"] ?? []) as Verdict[];
  const met = verdicts.filter((each) => each.passed).length;
  return (
    <details className={css.checks}>
      <summary data-passed={met === verdicts.length}>
        {met} of {verdicts.length} assertions met
      </summary>
      <ul>
        {verdicts.map((each, index) => (
          <li key={index} data-passed={each.passed}>
            <strong>{each.passed ? "Met" : "Not met"}:</strong> {each.expected}. {each.why}
          </li>
        ))}
      </ul>
    </details>
  );
}

function spent(reply: Reply): string {
  const tokens = `${short(reply.input_tokens + reply.output_tokens)} tokens`;
  return reply.cost_micros ? `${tokens} · ${dollars(reply.cost_micros / 1_000_000)}` : tokens;
}
