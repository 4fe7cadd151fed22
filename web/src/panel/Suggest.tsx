import { Check, Lightbulb, Plus } from "lucide-react";
import { type FormEvent, type ReactNode, useState } from "react";
import { inWords, post, type Schemas } from "../denizen/api";
import { Badge } from "../ui/Badge";
import { Button } from "../ui/Button";
import { TextArea } from "../ui/Field";
import { Skeleton } from "../ui/States";
import css from "./panel.module.css";

type Suggestion = Schemas["SuggestionOut"];

/** Advisors that a model proposes from a topic, each to be taken with a press. */
export function Suggest({ panel, onAdded }: { panel: string; onAdded: () => Promise<unknown> }): ReactNode {
  const [topic, setTopic] = useState("");
  const [found, setFound] = useState<Suggestion[] | null>(null);
  const [added, setAdded] = useState<ReadonlySet<string>>(new Set());
  const [busy, setBusy] = useState<"asking" | "adding" | null>(null);
  const [error, setError] = useState<unknown>(null);
  const path = { panel_id: panel };

  const run = async (what: "asking" | "adding", work: () => Promise<void>): Promise<void> => {
    setBusy(what);
    setError(null);
    try {
      await work();
    } catch (problem) {
      setError(problem);
    }
    setBusy(null);
  };
  const ask = (event: FormEvent): void => {
    event.preventDefault();
    void run("asking", async () => {
      setFound(null);
      const { suggestions } = await post("/api/panels/{panel_id}/advisors/suggest", { path, body: { topic: topic.trim(), count: 8 } });
      setFound(suggestions);
      setAdded(new Set());
    });
  };
  const add = (wanted: Suggestion[]): void =>
    void run("adding", async () => {
      for (const { name, description } of wanted) {
        await post("/api/panels/{panel_id}/advisors", { path, body: { name, description, colour: "", group: "", active: true, reasoning: false } });
        setAdded((known) => new Set([...known, name]));
      }
      await onAdded();
    });
  const left = found?.filter((each) => !added.has(each.name)) ?? [];
  return (
    <div className={css.suggest}>
      <form onSubmit={ask} className={css.form}>
        <TextArea label="What is your topic?" rows={2} required maxLength={8000} value={topic} onChange={(event) => setTopic(event.target.value)} placeholder="Whether to leave a safe job for a bakery" />
        <div className={css.right}>
          <Button type="submit" variant={found ? "plain" : "primary"} icon={<Lightbulb size={16} />} busy={busy === "asking"} disabled={!topic.trim()}>
            Suggest advisors
          </Button>
        </div>
      </form>
      {error !== null && (
        <p className={css.failure} role="alert">
          {inWords(error)}
        </p>
      )}
      {busy === "asking" && <Skeleton lines={6} label="Looking for advisors" />}
      {found && (
        <>
          <ul className={css.suggestions} aria-label="Suggestions">
            {found.map((each) => (
              <li key={each.name}>
                <div>
                  <p className={css.suggestionName}>
                    <strong>{each.name}</strong> <Badge tone={each.kind === "challenger" ? "warn" : "plain"}>{each.kind}</Badge>
                  </p>
                  <p>{each.reason}</p>
                </div>
                {added.has(each.name) ? (
                  <span className={css.added}>
                    <Check size={15} aria-hidden /> Added
                  </span>
                ) : (
                  <Button small icon={<Plus size={15} />} disabled={busy !== null} aria-label={`Add ${each.name}`} onClick={() => add([each])}>
                    Add
                  </Button>
                )}
              </li>
            ))}
          </ul>
          {left.length > 1 && (
            <div className={css.right}>
              <Button busy={busy === "adding"} icon={<Plus size={16} />} onClick={() => add(left)}>
                Add all {left.length}
              </Button>
            </div>
          )}
        </>
      )}
    </div>
  );
}
