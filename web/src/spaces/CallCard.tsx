import { Check, CircleHelp, Hourglass, ShieldQuestion, Wrench, X } from "lucide-react";
import { type FormEvent, memo, type ReactNode, useState } from "react";
import { ApiError, type Call, get, inWords, post } from "../denizen/api";
import { useStore } from "../denizen/live";
import type { CallDraft } from "../denizen/store";
import { Badge, type Tone } from "../ui/Badge";
import { Button } from "../ui/Button";
import { Code } from "../ui/Code";
import { Dialog, DialogFoot } from "../ui/Dialog";
import { Checkbox, Select, TextArea, TextField } from "../ui/Field";
import { Markdown } from "../ui/Markdown";
import { Time } from "../ui/Time";
import { useToast } from "../ui/Toast";
import { formFields, type FormField, type FormValues, question, readable } from "./calls";
import { useAround } from "./context";
import css from "./conversation.module.css";

const STATES: Record<Call["state"], { word: string; tone: Tone }> = {
  waiting: { word: "waiting", tone: "warn" },
  answered: { word: "done", tone: "good" },
  interrupted: { word: "interrupted", tone: "plain" },
  expired: { word: "too late", tone: "plain" },
  cancelled: { word: "cancelled", tone: "plain" },
  late: { word: "answered late", tone: "plain" },
};

/** A tool call that people see, or have to answer. */
export const CallCard = memo(function CallCard({ call }: { call: Call }): ReactNode {
  if (call.mode === "elicitation") return <ServerQuestion call={call} />;
  const asked = call.mode === "pause" || call.mode === "async";
  if (asked && call.why) return <Approval call={call} why={call.why} />;
  return asked ? <Question call={call} /> : <Shown call={call} />;
});

function Shown({ call }: { call: Call }): ReactNode {
  const around = useAround();
  const name = around.members.get(call.agent_id)?.name ?? "An agent";
  const { word, tone } = STATES[call.state];
  return (
    <details className={css.card}>
      <summary>
        <Wrench size={15} aria-hidden />
        <span>
          {name} used <code>{call.tool}</code>
        </span>
        <Badge tone={tone}>{word}</Badge>
      </summary>
      <div className={css.cardBody}>
        <h3>Input</h3>
        <Code text={readable(call.arguments)} language="json" label="Arguments" />
        {call.result !== null && (
          <>
            <h3>Answered</h3>
            <Code text={call.result} label="Result" />
          </>
        )}
      </div>
    </details>
  );
}

function Question({ call }: { call: Call }): ReactNode {
  const around = useAround();
  const [open, setOpen] = useState(false);
  const name = around.members.get(call.agent_id)?.name ?? "An agent";
  const by = call.settled_by ? (call.settled_by === around.me.id ? "you" : (around.members.get(call.settled_by)?.name ?? "someone")) : null;
  return (
    <section className={css.card} data-waiting={call.state === "waiting"} aria-label={`${name} asks`}>
      <div className={css.cardHead}>
        <CircleHelp size={16} aria-hidden />
        <span>
          <strong>{name}</strong> asks <code>{call.tool}</code>
        </span>
        {call.state !== "waiting" && <Badge tone={STATES[call.state].tone}>{by ? `answered by ${by}` : STATES[call.state].word}</Badge>}
      </div>
      <div className={css.cardBody}>
        <Markdown text={question(call.arguments)} known={around.known} me={around.me.handle} />
        {call.approval && <Code text={readable(call.arguments)} language="json" label="Arguments" />}
        {call.state === "waiting" ? (
          <div className={css.cardFoot}>
            <Answers call={call} />
            <Button small variant="quiet" onClick={() => setOpen(true)}>
              Write an answer
            </Button>
            {call.expires_at && (
              <span className={css.until}>
                <Hourglass size={13} aria-hidden /> until <Time value={call.expires_at} form="near" />
              </span>
            )}
          </div>
        ) : (
          call.result !== null && <p className={css.answer}>{answerInWords(call.result)}</p>
        )}
      </div>
      {open && <Answer call={call} name={name} onClose={() => setOpen(false)} />}
    </section>
  );
}

/** An effect that the agent may not have by itself: the person sees why, and exactly what would be done. */
function Approval({ call, why }: { call: Call; why: string }): ReactNode {
  const around = useAround();
  const { answer, busy } = useAnswer(call);
  const name = around.members.get(call.agent_id)?.name ?? "An agent";
  const by = call.settled_by ? (call.settled_by === around.me.id ? "you" : (around.members.get(call.settled_by)?.name ?? "someone")) : null;
  const approved = call.state === "answered" && isApproved(call.result);
  return (
    <section className={css.card} data-waiting={call.state === "waiting"} aria-label={`${name} asks for approval`}>
      <div className={css.cardHead}>
        <ShieldQuestion size={16} aria-hidden />
        <span>
          <strong>{name}</strong> wants to use <code>{call.tool}</code>
        </span>
        {call.state !== "waiting" && (
          <Badge tone={approved ? "good" : "plain"}>{by ? `${approved ? "approved" : "refused"} by ${by}` : "refused: no approval in time"}</Badge>
        )}
      </div>
      <div className={css.cardBody}>
        <p>{why}</p>
        <Code text={readable(call.arguments)} language="json" label="Arguments" />
        {call.state === "waiting" && (
          <div className={css.cardFoot}>
            <Button small variant="primary" icon={<Check size={15} />} busy={busy} onClick={() => void answer({ confirmed: true })}>
              Approve once
            </Button>
            <Button small disabled={busy} onClick={() => void answer({ confirmed: true, times: 100, seconds: 3600 })}>
              Approve for an hour
            </Button>
            <Button small icon={<X size={15} />} disabled={busy} onClick={() => void answer({ confirmed: false })}>
              Refuse
            </Button>
            {call.expires_at && (
              <span className={css.until}>
                <Hourglass size={13} aria-hidden /> until <Time value={call.expires_at} form="near" />
              </span>
            )}
          </div>
        )}
      </div>
    </section>
  );
}

/** A question of an MCP server in the middle of a call: its own words as they are, and a form or an address. */
function ServerQuestion({ call }: { call: Call }): ReactNode {
  const around = useAround();
  const { answer, busy } = useAnswer(call);
  const asked = call.arguments as { server?: string; message?: string; url?: string; form?: unknown };
  const name = around.members.get(call.agent_id)?.name ?? "An agent";
  const by = call.settled_by ? (call.settled_by === around.me.id ? "you" : (around.members.get(call.settled_by)?.name ?? "someone")) : null;
  const fields = formFields(asked.form);
  const [values, setValues] = useState<FormValues>(() => Object.fromEntries(fields.map((each) => [each.name, each.initial])));
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const filled = Object.entries(values).filter(([, value]) => value !== "");
    void answer({ action: "accept", content: asked.url ? undefined : Object.fromEntries(filled) });
  };
  return (
    <section className={css.card} data-waiting={call.state === "waiting"} aria-label={`${asked.server} asks`}>
      <div className={css.cardHead}>
        <CircleHelp size={16} aria-hidden />
        <span>
          The MCP server <strong>{readable(asked.server ?? "")}</strong> asks, for <code>{call.tool}</code> of {name}
        </span>
        {call.state !== "waiting" && <Badge tone={STATES[call.state].tone}>{by ? `answered by ${by}` : STATES[call.state].word}</Badge>}
      </div>
      <form className={css.cardBody} onSubmit={submit}>
        <p className={css.plain}>{readable(asked.message ?? "")}</p>
        {asked.url && (
          <a href={asked.url} target="_blank" rel="noopener noreferrer nofollow">
            {readable(asked.url)}
          </a>
        )}
        {call.state === "waiting" ? (
          <>
            {fields.map((each) => (
              <AskedField key={each.name} field={each} value={values[each.name] ?? ""} onChange={(value) => setValues({ ...values, [each.name]: value })} />
            ))}
            <div className={css.cardFoot}>
              <Button small variant="primary" type="submit" icon={<Check size={15} />} busy={busy}>
                {asked.url ? "I have opened it" : fields.length ? "Send to the server" : "Accept"}
              </Button>
              <Button small icon={<X size={15} />} disabled={busy} onClick={() => void answer({ action: "decline" })}>
                Decline
              </Button>
              {call.expires_at && (
                <span className={css.until}>
                  <Hourglass size={13} aria-hidden /> until <Time value={call.expires_at} form="near" />
                </span>
              )}
            </div>
          </>
        ) : (
          call.result !== null && <Code text={readable(call.result)} language="json" label="Answer" />
        )}
      </form>
    </section>
  );
}

function AskedField({ field, value, onChange }: { field: FormField; value: FormValues[string]; onChange: (value: FormValues[string]) => void }): ReactNode {
  const about = { label: field.required ? field.label : `${field.label} (optional)`, hint: field.hint, required: field.required };
  if (field.kind === "boolean") {
    return <Checkbox label={field.label} hint={field.hint} checked={value === true} onChange={(event) => onChange(event.target.checked)} />;
  }
  if (field.kind === "choice") {
    return (
      <Select {...about} value={String(value)} onChange={(event) => onChange(event.target.value)}>
        <option value="">Choose…</option>
        {field.choices.map((each) => (
          <option key={each.value} value={each.value}>
            {each.label}
          </option>
        ))}
      </Select>
    );
  }
  if (field.kind === "number") {
    return (
      <TextField
        {...about}
        type="number"
        step={field.whole ? 1 : "any"}
        value={String(value)}
        onChange={(event) => onChange(event.target.value === "" ? "" : Number(event.target.value))}
      />
    );
  }
  return <TextField {...about} value={String(value)} onChange={(event) => onChange(event.target.value)} />;
}

function isApproved(result: string | null): boolean {
  try {
    return (JSON.parse(result ?? "") as { confirmed?: unknown }).confirmed === true;
  } catch {
    return false;
  }
}

function Answers({ call, onDone }: { call: Call; onDone?: () => void }): ReactNode {
  const { answer, busy } = useAnswer(call, onDone);
  return (
    <>
      <Button small variant="primary" icon={<Check size={15} />} busy={busy} onClick={() => void answer({ confirmed: true })}>
        Confirm
      </Button>
      <Button small icon={<X size={15} />} disabled={busy} onClick={() => void answer({ confirmed: false })}>
        Decline
      </Button>
    </>
  );
}

/** The whole question, what comes with it, and an answer: yes, no, or in words. */
function Answer({ call, name, onClose }: { call: Call; name: string; onClose: () => void }): ReactNode {
  const around = useAround();
  const [words, setWords] = useState("");
  const { answer, busy } = useAnswer(call, onClose);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    void answer(words.trim());
  };
  return (
    <Dialog title={`${name} asks`} onClose={onClose}>
      <Markdown text={question(call.arguments)} known={around.known} me={around.me.handle} />
      <details className={css.more}>
        <summary>Everything that {name} sent</summary>
        <Code text={readable(call.arguments)} language="json" label="Arguments" />
      </details>
      <form onSubmit={submit} className={css.answerForm}>
        <TextArea label="Your answer" autoFocus rows={3} value={words} onChange={(event) => setWords(event.target.value)} />
        <DialogFoot>
          <Answers call={call} onDone={onClose} />
          <Button variant="primary" small type="submit" busy={busy} disabled={!words.trim()}>
            Send answer
          </Button>
        </DialogFoot>
      </form>
    </Dialog>
  );
}

type AnswerGiven = string | { confirmed: boolean; times?: number; seconds?: number } | { action: "accept" | "decline"; content?: FormValues };

function useAnswer(call: Call, onDone?: () => void): { answer: (result: AnswerGiven) => Promise<void>; busy: boolean } {
  const store = useStore();
  const toast = useToast();
  const [busy, setBusy] = useState(false);
  const path = { call_id: call.id };
  const answer = async (result: AnswerGiven): Promise<void> => {
    setBusy(true);
    try {
      store.dispatch({ type: "call", call: await post("/api/calls/{call_id}/answer", { path, body: { result } }) });
      onDone?.();
    } catch (error) {
      toast(error instanceof ApiError && error.code === "already_settled" ? "Already answered." : inWords(error));
      if (error instanceof ApiError && error.code === "already_settled") {
        store.dispatch({ type: "call", call: await get("/api/calls/{call_id}", { path }) });
      }
    } finally {
      setBusy(false);
    }
  };
  return { answer, busy };
}

function answerInWords(result: string): string {
  if (result === '{"confirmed":true}' || result === '{"confirmed": true}') return "Confirmed.";
  if (result === '{"confirmed":false}' || result === '{"confirmed": false}') return "Declined.";
  return result;
}

/** The arguments of a call, as they are written. */
export const DraftCard = memo(function DraftCard({ draft }: { draft: CallDraft }): ReactNode {
  const around = useAround();
  const name = around.members.get(draft.agent)?.name ?? "An agent";
  return (
    <section className={css.card} aria-label={`${name} uses ${draft.tool}`} aria-busy>
      <div className={css.cardHead}>
        <Wrench size={15} aria-hidden />
        <span>
          {name} uses <code>{draft.tool}</code>
        </span>
      </div>
      {draft.text && <pre className={css.draft}>{draft.text}</pre>}
    </section>
  );
});
