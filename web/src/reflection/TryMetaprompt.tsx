import { useMutation } from "@tanstack/react-query";
import { ArrowRight } from "lucide-react";
import { type FormEvent, type ReactNode, useState } from "react";
import { post, put, type Schemas } from "../denizen/api";
import { Badge } from "../ui/Badge";
import { Button } from "../ui/Button";
import { Fault } from "../ui/Confirm";
import { Checkbox, Select, TextArea } from "../ui/Field";
import { Loaded } from "../ui/States";
import { type Place, useReflectionNames, useStanceChanged } from "./asking";
import css from "./reflection.module.css";
import { differences, SIDES } from "./timeline";

type Tried = Schemas["TriedOut"];
const VARIABLES = "{{current_mood}}, {{user_skill}}, {{task_complexity}}, {{recent_conversation}}, {{recent_errors}}, {{evidence}}, {{sentiment_score}}";

/** Asking a metaprompt by hand, to see what would come of it, or to have it come. */
export function TryMetaprompt({ place }: { place: Place }): ReactNode {
  const names = useReflectionNames();
  return (
    <section className={css.section} aria-label="Try a metaprompt">
      <h2>Try a metaprompt</h2>
      <p className={css.about}>Makes one model call. Nothing changes unless you apply the result.</p>
      <Loaded query={names} lines={3}>
        {({ metaprompts }) => <Trial known={[...new Set([...place.own, ...metaprompts])]} place={place} />}
      </Loaded>
    </section>
  );
}

function Trial({ known, place }: { known: string[]; place: Place }): ReactNode {
  const changed = useStanceChanged(place);
  const [chosen, choose] = useState(known[0] ?? "");
  const [template, setTemplate] = useState("");
  const [apply, setApply] = useState(false);
  const ask = useMutation({
    mutationFn: () => post(`${place.root}/try` as const, { path: place.path, body: chosen === "" ? { template, apply } : { metaprompt: chosen, apply } }),
    onSuccess: (tried) => (tried.applied ? changed() : undefined),
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    ask.mutate();
  };
  return (
    <>
      <form className={css.form} onSubmit={submit}>
        <div className={css.fields}>
          <Select label="Metaprompt" value={chosen} onChange={(event) => choose(event.target.value)}>
            {known.map((each) => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
            <option value="">Custom</option>
          </Select>
        </div>
        {chosen === "" && (
          <TextArea label="Prompt text" rows={4} required maxLength={8000} value={template} placeholder="Your mood is {{current_mood}}. What should change?" hint={`Variables: ${VARIABLES}.`} onChange={(event) => setTemplate(event.target.value)} />
        )}
        <Checkbox label="Parse the answer as a state of mind" checked={apply} onChange={(event) => setApply(event.target.checked)} />
        <Fault error={ask.error} />
        <div className={css.buttons}>
          <Button type="submit" variant="primary" busy={ask.isPending} disabled={chosen === "" && !template.trim()}>
            Ask
          </Button>
        </div>
      </form>
      {ask.data && !ask.isPending && <Outcome key={ask.submittedAt} tried={ask.data} place={place} />}
    </>
  );
}

function Outcome({ tried, place }: { tried: Tried; place: Place }): ReactNode {
  const changed = useStanceChanged(place);
  const take = useMutation({
    mutationFn: () => put(`${place.root}/state` as const, { path: place.path, body: tried.after }),
    onSuccess: changed,
  });
  const different = differences(tried.before, tried.after);
  const holds = tried.applied || take.isSuccess;
  return (
    <div className={css.outcome} role="status" aria-label="Result">
      <p className={css.why}>
        {tried.failed !== null ? <Badge tone="bad">failed</Badge> : holds ? <Badge tone="good">holds</Badge> : <Badge>tried</Badge>}
        <span dir="auto">{tried.failed ?? (tried.reason || "No reason given.")}</span>
      </p>
      {tried.failed === null &&
        (different.length === 0 ? (
          <p className={css.faint}>No change.</p>
        ) : (
          <dl className={css.compared}>
            {different.map(({ side, before, after }) => (
              <div key={side}>
                <dt>{SIDES.find(([each]) => each === side)![1]}</dt>
                <dd>
                  <span className={css.faint}>{before}</span> <ArrowRight size={14} aria-label="becomes" /> <strong>{after}</strong>
                </dd>
              </div>
            ))}
          </dl>
        ))}
      <details className={css.imprints}>
        <summary>Prompt</summary>
        <pre className={css.prompt}>{tried.prompt}</pre>
      </details>
      <Fault error={take.error} />
      {tried.failed === null && !holds && different.length > 0 && (
        <div className={css.buttons}>
          <Button small busy={take.isPending} onClick={() => take.mutate()}>
            Apply
          </Button>
        </div>
      )}
    </div>
  );
}
