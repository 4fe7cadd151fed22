import { useMutation } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useState } from "react";
import { post, type Schemas } from "../denizen/api";
import { dollars } from "../ui/amounts";
import { Button } from "../ui/Button";
import { Select } from "../ui/Field";
import { ErrorState } from "../ui/States";
import { classes } from "../ui/classes";
import { useModels } from "./asking";
import css from "./mind.module.css";
import { ModelField } from "./ModelField";
import { sideBySide } from "./transcript";
import { useMind } from "./watch";
import { tokens } from "./words";

/** The same requests, asked of another model; then both answers side by side. Nothing happens by it. */
export function Rethink({ cycle }: { cycle: Schemas["CycleDetail"] }): ReactNode {
  const { agent } = useMind();
  const models = useModels();
  const [model, setModel] = useState("");
  const [step, setStep] = useState("");
  const asking = useMutation({
    mutationFn: () =>
      post("/api/agents/{agent_id}/cycles/{number}/rethink", {
        path: { agent_id: agent.id, number: cycle.number! },
        body: { model, step: step === "" ? null : Number(step) },
      }),
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    asking.mutate();
  };
  return (
    <section className={css.rethink} aria-label="Another model">
      <p className={css.aside}>Sends the same requests to another model. No tools run and nothing is saved; the calls cost money as usual.</p>
      <form className={css.inlineForm} onSubmit={submit}>
        <ModelField label="Model" value={model} onChange={setModel} models={models.data?.models ?? []} required />
        <Select label="Step" value={step} onChange={(event) => setStep(event.target.value)}>
          <option value="">All steps</option>
          {cycle.each_step.map((each) => (
            <option key={each.step} value={each.step}>
              {each.step + 1}
            </option>
          ))}
        </Select>
        <Button type="submit" variant="primary" busy={asking.isPending} disabled={!model.trim()}>
          Ask
        </Button>
      </form>
      {asking.error && <ErrorState error={asking.error} />}
      {asking.data?.answers.map((answer) => (
        <Compared key={answer.step} answer={answer} before={cycle.each_step[answer.step]?.model ?? agent.model} />
      ))}
    </section>
  );
}

function Compared({ answer, before }: { answer: Schemas["AnswerAgain"]; before: string }): ReactNode {
  const rows = sideBySide(answer.difference);
  return (
    <div className={css.compared}>
      <div className={css.sectionHead}>
        <h3>Step {answer.step + 1}</h3>
        <p className={css.meta}>
          <span>{tokens(answer.usage)}</span>
          <span>{answer.dollars === null ? "price unknown" : dollars(answer.dollars)}</span>
        </p>
      </div>
      {rows.length === 0 ? (
        <p className={css.nothing}>Both answers are the same.</p>
      ) : (
        <table className={css.sides}>
          <thead>
            <tr>
              <th scope="col">Original: {before}</th>
              <th scope="col">{answer.model}</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row, index) => (
              <tr key={index}>
                <td className={classes(!row.same && row.left !== null && css.gone)}>{row.left}</td>
                <td className={classes(!row.same && row.right !== null && css.come)}>{row.right}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}
