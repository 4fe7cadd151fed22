/** What is remembered, by category: each with where it was said, its history, and what can be done with it. */
import { type UseInfiniteQueryResult } from "@tanstack/react-query";
import { History, MoreHorizontal, Pencil, Trash2 } from "lucide-react";
import { type FormEvent, type ReactNode, useState } from "react";
import { Link } from "wouter";
import { inWords } from "../denizen/api";
import { useSpaces } from "../denizen/hooks";
import { Badge } from "../ui/Badge";
import { Button } from "../ui/Button";
import { Dialog, DialogFoot } from "../ui/Dialog";
import { TextArea } from "../ui/Field";
import { Menu } from "../ui/Menu";
import { OutsideLabel } from "../ui/OutsideLabel";
import { ShowMore } from "../ui/ShowMore";
import { ErrorState, Skeleton } from "../ui/States";
import { Time } from "../ui/Time";
import { useToast } from "../ui/Toast";
import { useMemoryChange } from "./asking";
import css from "./memory.module.css";
import { MemoryHistory } from "./MemoryHistory";
import { byCategory, categoryName, counted, held, type Held, type Memory } from "./words";

interface ListProps {
  query: UseInfiniteQueryResult<Memory[]>;
  /** Whether they may be corrected and forgotten. */
  changeable: boolean;
  /** As they come: the best first. */
  flat?: boolean;
  /** Beside each, whom it is about. */
  about?: (memory: Memory) => ReactNode;
  /** Shown where there is nothing. */
  empty: ReactNode;
}

export function MemoryList({ query, changeable, flat, about, empty }: ListProps): ReactNode {
  if (query.error && query.data === undefined) return <ErrorState error={query.error} onRetry={() => void query.refetch()} />;
  if (query.data === undefined) return <Skeleton lines={10} label="Loading memories" />;
  const found = held(query.data);
  const groups: [string, Held[]][] = flat ? [["", found.held]] : byCategory(found.held);
  const rows = (all: Held[], named: boolean): ReactNode => (
    <ul className={css.rows}>
      {all.map((each) => (
        <Row key={each.memory.id} held={each} changeable={changeable} about={about} named={named} />
      ))}
    </ul>
  );
  return (
    <>
      {query.data.length === 0 && empty}
      {found.held.length > 0 &&
        groups.map(([category, all]) =>
          category === "" ? (
            <section key="found" aria-label="Found">
              {rows(all, true)}
            </section>
          ) : (
            <section key={category} className={css.group} aria-label={categoryName(category)}>
              <h2 className={css.groupHead}>
                {categoryName(category)} <span className={css.count}>{all.length}</span>
              </h2>
              {rows(all, false)}
            </section>
          ),
        )}
      {found.gone.length > 0 && <Gone gone={found.gone} />}
      <ShowMore pages={query} />
    </>
  );
}

function Gone({ gone }: { gone: Memory[] }): ReactNode {
  return (
    <details className={css.gone}>
      <summary>{counted(gone.length, "memory is", "memories are")} outdated</summary>
      <ul>
        {gone.map((each) => (
          <li key={each.id} dir="auto">
            {each.text}
          </li>
        ))}
      </ul>
    </details>
  );
}

interface RowProps {
  held: Held;
  changeable: boolean;
  about?: (memory: Memory) => ReactNode;
  /** Whether its category is told. */
  named: boolean;
}

function Row({ held: { memory, earlier }, changeable, about, named }: RowProps): ReactNode {
  const [dialog, setDialog] = useState<"correct" | "forget" | "history" | null>(null);
  const whom = about?.(memory);
  return (
    <li className={css.row}>
      <div className={css.words}>
        <p className={css.text} dir="auto">
          {memory.text}
        </p>
        <p className={css.meta}>
          {named && <Badge>{categoryName(memory.category)}</Badge>}
          {whom && <span>{whom}</span>}
          <Source memory={memory} />
          {memory.outside && <OutsideLabel />}
          {memory.confidence < 1 && <span>{Math.round(memory.confidence * 100)}% sure</span>}
          <span>
            since <Time value={memory.created_at} />
          </span>
          {memory.uses > 0 && (
            <span>
              recalled {memory.uses === 1 ? "once" : `${memory.uses} times`}
              {memory.used_at && (
                <>
                  , last <Time value={memory.used_at} form="ago" />
                </>
              )}
            </span>
          )}
          {earlier.length > 0 && (
            <button type="button" className={css.history} onClick={() => setDialog("history")}>
              {counted(earlier.length, "earlier version", "earlier versions")}
            </button>
          )}
        </p>
      </div>
      {changeable && memory.category !== "snapshot" && (
        <Menu
          label={`Actions for “${memory.text.slice(0, 60)}”`}
          icon={<MoreHorizontal size={18} />}
          items={[
            { label: "Correct", icon: <Pencil size={16} />, onSelect: () => setDialog("correct") },
            { label: "History", icon: <History size={16} />, onSelect: () => setDialog("history") },
            { label: "Forget", icon: <Trash2 size={16} />, danger: true, onSelect: () => setDialog("forget") },
          ]}
        />
      )}
      {dialog === "history" && <MemoryHistory memory={memory} changeable={changeable} onClose={() => setDialog(null)} />}
      {dialog === "correct" && <Correct memory={memory} onClose={() => setDialog(null)} />}
      {dialog === "forget" && <Forget memory={memory} onClose={() => setDialog(null)} />}
    </li>
  );
}

const MOST_SOURCES = 3;

/** Where it was said: links to the messages, for those who are there. */
function Source({ memory }: { memory: Memory }): ReactNode {
  const space = useSpaces()?.find((each) => each.info.id === memory.space_id);
  if (space === undefined) return <span>learned in a space you are not in</span>;
  const [first, ...others] = memory.sources.slice(0, MOST_SOURCES);
  if (first === undefined) return <span>learned in {space.info.name}</span>;
  return (
    <span>
      <Link href={`/m/${first}`}>said in {space.info.name}</Link>
      {others.map((each, at) => (
        <span key={each}>
          {", "}
          <Link href={`/m/${each}`} aria-label={`said again in ${space.info.name}, message ${at + 2} of ${memory.sources.length}`}>
            again
          </Link>
        </span>
      ))}
      {memory.sources.length > MOST_SOURCES && ` and ${memory.sources.length - MOST_SOURCES} times more`}
    </span>
  );
}

function Correct({ memory, onClose }: { memory: Memory; onClose: () => void }): ReactNode {
  const say = useToast();
  const { correct } = useMemoryChange();
  const [text, setText] = useState(memory.text);
  const [refused, setRefused] = useState(false);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const wanted = text.trim();
    correct.mutate(
      { id: memory.id, text: wanted },
      {
        onSuccess: (now) => {
          if (now.id === memory.id) return setRefused(true);
          say("Memory saved.");
          onClose();
        },
      },
    );
  };
  const wrong = correct.error ? inWords(correct.error) : refused ? "This text was forgotten earlier and cannot be stored again. Use different words." : undefined;
  return (
    <Dialog title="Correct memory" onClose={onClose}>
      <form className={css.form} onSubmit={submit}>
        <TextArea
          label="Correct text"
          rows={4}
          required
          autoFocus
          maxLength={500}
          value={text}
          error={wrong}
          onChange={(event) => {
            setText(event.target.value);
            setRefused(false);
          }}
          hint="The previous version is kept in its history but no longer recalled. To remove it too, forget the memory."
        />
        <DialogFoot onCancel={onClose}>
          <Button type="submit" variant="primary" busy={correct.isPending} disabled={!text.trim() || text.trim() === memory.text}>
            Save
          </Button>
        </DialogFoot>
      </form>
    </Dialog>
  );
}

function Forget({ memory, onClose }: { memory: Memory; onClose: () => void }): ReactNode {
  const say = useToast();
  const { forget } = useMemoryChange();
  const go = (): void =>
    forget.mutate(memory.id, {
      onSuccess: () => {
        say("Memory forgotten.");
        onClose();
      },
    });
  return (
    <Dialog title="Forget this memory?" onClose={onClose}>
      <blockquote className={css.quote} dir="auto">
        {memory.text}
      </blockquote>
      <ul className={css.meaning}>
        <li>Removes the memory and its previous versions, and copies of others with the same text.</li>
        <li>Removes it from summaries, search and what agents recalled.</li>
        <li>The same text is not stored again.</li>
        <li>The messages it came from stay.</li>
      </ul>
      {forget.error && (
        <p role="alert" className={css.fault}>
          {inWords(forget.error)}
        </p>
      )}
      <DialogFoot onCancel={onClose}>
        <Button variant="danger" busy={forget.isPending} onClick={go}>
          Forget
        </Button>
      </DialogFoot>
    </Dialog>
  );
}
