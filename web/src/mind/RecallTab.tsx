import { useQuery } from "@tanstack/react-query";
import { Search } from "lucide-react";
import { type FormEvent, Fragment, type ReactNode, useId, useState } from "react";
import { Link, useSearchParams } from "wouter";
import { get, type Schemas } from "../denizen/api";
import { useEntities, useSpaces } from "../denizen/hooks";
import { Badge } from "../ui/Badge";
import { Button } from "../ui/Button";
import { Field, inputClass } from "../ui/Field";
import { Empty, ErrorState, Skeleton } from "../ui/States";
import { Time } from "../ui/Time";
import css from "./mind.module.css";
import { useMind } from "./watch";

const NAMES = ["q", "who", "space", "when"] as const;
type Wanted = Record<(typeof NAMES)[number], string>;

/** A search over its whole past, as the agent itself would search. What is looked for stands in the address. */
export function RecallTab({ at }: { at: string }): ReactNode {
  const { agent } = useMind();
  const [params, setParams] = useSearchParams();
  const wanted = Object.fromEntries(NAMES.map((name) => [name, params.get(name) ?? ""])) as Wanted;
  const [typed, setTyped] = useState(wanted);
  const recall = useQuery({
    queryKey: ["recall", agent.id, wanted],
    enabled: wanted.q !== "",
    queryFn: ({ signal }) =>
      get("/api/agents/{agent_id}/recall", {
        path: { agent_id: agent.id },
        query: { q: wanted.q, who: wanted.who || null, space: wanted.space || null, when: wanted.when || null, limit: 40 },
        signal,
      }),
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    setParams(Object.fromEntries(NAMES.map((name) => [name, typed[name].trim()]).filter(([, value]) => value)));
  };
  const field = (name: keyof Wanted) => ({ value: typed[name], onChange: (value: string) => setTyped({ ...typed, [name]: value }) });
  return (
    <>
      <form className={css.recallForm} onSubmit={submit} role="search" aria-label={`What ${agent.name} remembers`}>
        <div className={css.recallMain}>
          <input
            className={inputClass}
            type="search"
            aria-label="Search"
            placeholder={`Search the history of ${agent.name}…`}
            value={typed.q}
            onChange={(event) => field("q").onChange(event.target.value)}
          />
          <Button type="submit" variant="primary" icon={<Search size={16} />} disabled={!typed.q.trim()}>
            Search
          </Button>
        </div>
        <Filters field={field} />
      </form>
      <Results wanted={wanted} recall={recall} at={at} />
    </>
  );
}

function Filters({ field }: { field: (name: keyof Wanted) => { value: string; onChange: (value: string) => void } }): ReactNode {
  const { agent } = useMind();
  const entities = useEntities();
  const spaces = useSpaces() ?? [];
  const people = ["me", ...(entities.data ?? []).filter((each) => each.id !== agent.id).map((each) => `@${each.handle}`)];
  const theirs = spaces.filter((each) => each.info.members.some((member) => member.id === agent.id)).map((each) => each.info.name);
  return (
    <div className={css.filters}>
      <Filter label="Author" placeholder="anyone" options={people} {...field("who")} />
      <Filter label="Space" placeholder="all but private spaces" options={theirs} {...field("space")} />
      <Filter label="When" placeholder="any time" options={["today", "yesterday", "last week", "last month"]} {...field("when")} />
    </div>
  );
}

function Filter({ label, placeholder, options, value, onChange }: { label: string; placeholder: string; options: string[]; value: string; onChange: (value: string) => void }): ReactNode {
  const list = useId();
  return (
    <Field label={label}>
      {(props) => (
        <>
          <input {...props} className={inputClass} list={list} placeholder={placeholder} autoComplete="off" value={value} onChange={(event) => onChange(event.target.value)} />
          <datalist id={list}>
            {options.map((each) => (
              <option key={each} value={each} />
            ))}
          </datalist>
        </>
      )}
    </Field>
  );
}

function Results({ wanted, recall, at }: { wanted: Wanted; recall: { data?: Schemas["RecallOut"]; error: unknown; refetch: () => unknown }; at: string }): ReactNode {
  const { agent } = useMind();
  if (wanted.q === "") {
    return (
      <Empty title="Search the full history.">
        <p>Everything {agent.name} read, wrote and did since its first cycle. To search a private space, choose it as a filter.</p>
      </Empty>
    );
  }
  if (recall.error) return <ErrorState error={recall.error} onRetry={() => void recall.refetch()} />;
  if (recall.data === undefined) return <Skeleton lines={10} />;
  const { found } = recall.data;
  if (found.length === 0) {
    return (
      <Empty title="No results.">
        <p>Try other words, or fewer filters.</p>
      </Empty>
    );
  }
  return (
    <section aria-label="Results">
      <p className={css.aside} role="status">
        {found.length === 1 ? "1 result" : `${found.length} results, best first`}
      </p>
      <ul className={css.found}>
        {found.map((each, index) => (
          <li key={index}>
            <Remembered found={each} words={wanted.q} at={at} />
          </li>
        ))}
      </ul>
    </section>
  );
}

const KINDS: Record<string, string> = { heard: "heard", said: "said", did: "did", summary: "summary", note: "note" };

function Remembered({ found, words, at }: { found: Schemas["Recalled"]; words: string; at: string }): ReactNode {
  const { agent } = useMind();
  return (
    <div className={css.memory}>
      <p className={css.cardHead}>
        <strong>{found.who || agent.name}</strong>
        <span className={css.meta}>
          {found.space && <span>in {found.space}</span>}
          <Time value={found.at} />
          {found.cycle > 0 && <Link href={`${at}/life/${found.cycle}`}>Cycle {found.cycle}</Link>}
        </span>
        <Badge>{KINDS[found.kind] ?? found.kind}</Badge>
      </p>
      <p className={css.plainWords} dir="auto">
        <Marked text={found.text} words={words} />
      </p>
    </div>
  );
}

/** The text, with the words that were looked for. */
function Marked({ text, words }: { text: string; words: string }): ReactNode {
  const wanted = words.split(/\s+/).filter((each) => each.length > 2);
  if (wanted.length === 0) return text;
  const pattern = new RegExp(`(${wanted.map((each) => each.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|")})`, "giu");
  return text.split(pattern).map((piece, index) => (index % 2 ? <mark key={index}>{piece}</mark> : <Fragment key={index}>{piece}</Fragment>));
}
