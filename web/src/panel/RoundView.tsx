import { Ban, Combine, MessagesSquare, RotateCw, Vote as VoteIcon } from "lucide-react";
import { type FormEvent, type ReactNode, useState } from "react";
import { dollars, short } from "../ui/amounts";
import { post, type Reply, type Round } from "../denizen/api";
import { repliesOf } from "../denizen/panels";
import { Button, IconButton } from "../ui/Button";
import { CopyButton } from "../ui/Code";
import { Dialog, DialogFoot } from "../ui/Dialog";
import { Select, TextField } from "../ui/Field";
import { Markdown } from "../ui/Markdown";
import { Card, Dots, Thinking, useSaid } from "./Card";
import css from "./panel.module.css";
import { TallyView } from "./TallyView";
import { useAround } from "./usePanel";
import { progressWords, roundTitle } from "./words";

/** One round: a card for each voice, what the vote came to, what was put together, and what can be done with all of it. */
export function RoundView({ round, turn, isLast }: { round: Round; turn: Round[]; isLast: boolean }): ReactNode {
  const title = roundTitle(round, turn);
  const replies = Object.values(round.advisor_responses);
  return (
    <section className={css.round} aria-label={title || "Answers"}>
      {title && <h2 className={css.roundTitle}>{title}</h2>}
      {round.tally && <TallyView tally={round.tally} round={round} />}
      <div className={css.cards} data-count={Math.min(replies.length, 3)}>
        {replies.map((reply) => (
          <Card key={reply.advisor} round={round} reply={reply} isLast={isLast} />
        ))}
      </div>
      {round.synthesis && <Synthesis round={round} reply={round.synthesis} />}
      <RoundBar round={round} turn={turn} isLast={isLast} />
    </section>
  );
}

function Synthesis({ round, reply }: { round: Round; reply: Reply }): ReactNode {
  const { panel, act } = useAround();
  const { text, thinking } = useSaid(round, reply);
  const path = { panel_id: panel.id, round_id: round.id };
  const growing = reply.state === "running";
  return (
    <article className={css.synthesis} aria-label="Synthesis" aria-busy={growing}>
      <header className={css.cardHead}>
        <Combine size={16} aria-hidden />
        <div className={css.who}>
          <h3>Synthesis</h3>
        </div>
        {!reply.completed && (
          <IconButton
            label="Stop the synthesis"
            icon={<Ban size={15} />}
            onClick={() => void act(() => post("/api/panels/{panel_id}/rounds/{round_id}/cancel", { path, body: { advisor: "synthesis" } }))}
          />
        )}
        {reply.completed && (
          <IconButton
            label="Synthesize again"
            icon={<RotateCw size={15} />}
            onClick={() => void act(() => post("/api/panels/{panel_id}/rounds/{round_id}/synthesis", { path }))}
          />
        )}
        {text && <CopyButton text={text} label="Copy the synthesis" />}
      </header>
      {thinking && <Thinking text={thinking} growing={growing && !text} />}
      {reply.state === "failed" && (
        <p className={css.failure} role="alert">
          {reply.error?.message} <code>{reply.error?.code}</code>
        </p>
      )}
      {reply.state === "cancelled" && <p className={css.faint}>Stopped.</p>}
      {text ? <Markdown text={text} growing={growing} /> : !reply.completed && <Dots />}
    </article>
  );
}

/** How far it has come, what it cost, and what to do with the whole of it. */
function RoundBar({ round, turn, isLast }: { round: Round; turn: Round[]; isLast: boolean }): ReactNode {
  const { panel, act } = useAround();
  const [open, setOpen] = useState<"vote" | "crosstalk" | null>(null);
  const path = { panel_id: panel.id, round_id: round.id };
  const replies = Object.values(round.advisor_responses);
  const advised = replies.some((each) => each.advisor !== "assistant");
  const answered = replies.filter((each) => each.state === "done").length;
  const again = replies.filter((each) => each.state === "failed" || each.state === "cancelled").length;
  const end = round === turn.at(-1);
  const mayFollow = end && advised && turn.every((each) => each.all_completed);
  return (
    <div className={css.bar}>
      <span className={css.spent}>
        <span role="status">{replies.length > 1 && progressWords(round)}</span>
        {round.all_completed && replies.length > 1 && ` · ${cost(round)}`}
      </span>
      {!round.all_completed && replies.length > 1 && (
        <Button small variant="quiet" icon={<Ban size={15} />} onClick={() => void act(() => post("/api/panels/{panel_id}/rounds/{round_id}/cancel", { path, body: {} }))}>
          Stop all
        </Button>
      )}
      {again > 1 && (
        <Button small variant="quiet" icon={<RotateCw size={15} />} onClick={() => void act(() => post("/api/panels/{panel_id}/rounds/{round_id}/retry", { path, body: {} }))}>
          Ask {again} again
        </Button>
      )}
      {round.kind !== "vote" && advised && round.all_completed && answered > 0 && !round.synthesis && (
        <Button small variant="quiet" icon={<Combine size={15} />} onClick={() => void act(() => post("/api/panels/{panel_id}/rounds/{round_id}/synthesis", { path }))}>
          Synthesize
        </Button>
      )}
      {mayFollow && isLast && answered > 1 && (
        <Button small variant="quiet" icon={<MessagesSquare size={15} />} onClick={() => setOpen("crosstalk")}>
          Cross-talk
        </Button>
      )}
      {mayFollow && (
        <Button small variant="quiet" icon={<VoteIcon size={15} />} onClick={() => setOpen("vote")}>
          Vote
        </Button>
      )}
      {open === "vote" && <VoteDialog round={round} onClose={() => setOpen(null)} />}
      {open === "crosstalk" && <CrosstalkDialog round={round} onClose={() => setOpen(null)} />}
    </div>
  );
}

function VoteDialog({ round, onClose }: { round: Round; onClose: () => void }): ReactNode {
  const { panel, act } = useAround();
  const [question, setQuestion] = useState("");
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    onClose();
    void act(() => post("/api/panels/{panel_id}/rounds/{round_id}/vote", { path: { panel_id: panel.id, round_id: round.id }, body: { question: question.trim() } }));
  };
  return (
    <Dialog title="Start a vote" onClose={onClose}>
      <form onSubmit={submit} className={css.form}>
        <TextField
          label="Question"
          hint="Empty: your last question. Each advisor gives a position, its confidence and a reason."
          autoFocus
          maxLength={4000}
          value={question}
          onChange={(event) => setQuestion(event.target.value)}
        />
        <DialogFoot onCancel={onClose}>
          <Button variant="primary" type="submit">
            Vote
          </Button>
        </DialogFoot>
      </form>
    </Dialog>
  );
}

function CrosstalkDialog({ round, onClose }: { round: Round; onClose: () => void }): ReactNode {
  const { panel, act } = useAround();
  const [times, setTimes] = useState(1);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    onClose();
    void act(() => post("/api/panels/{panel_id}/rounds/{round_id}/crosstalk", { path: { panel_id: panel.id, round_id: round.id }, body: { rounds: times } }));
  };
  return (
    <Dialog title="Start cross-talk" onClose={onClose}>
      <form onSubmit={submit} className={css.form}>
        <Select label="Rounds" hint="In each round, every advisor reads the others' latest replies." value={times} onChange={(event) => setTimes(Number(event.target.value))}>
          {[1, 2, 3, 4, 5].map((each) => (
            <option key={each} value={each}>
              {each === 1 ? "Once" : `${each} times`}
            </option>
          ))}
        </Select>
        <DialogFoot onCancel={onClose}>
          <Button variant="primary" type="submit">
            Start
          </Button>
        </DialogFoot>
      </form>
    </Dialog>
  );
}

function cost(round: Round): string {
  const all = repliesOf(round);
  const tokens = all.reduce((sum, each) => sum + each.input_tokens + each.output_tokens, 0);
  const micros = all.reduce((sum, each) => sum + (each.cost_micros ?? 0), 0);
  return micros > 0 ? `${short(tokens)} tokens · ${dollars(micros / 1_000_000)}` : `${short(tokens)} tokens`;
}
