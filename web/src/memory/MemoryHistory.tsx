/** The versions of a memory: what changed it and why, how they differ, and a way back. */
import type { ReactNode } from "react";
import { Link } from "wouter";
import { inWords } from "../denizen/api";
import { useEntities, useMe } from "../denizen/hooks";
import { Badge } from "../ui/Badge";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { Loaded } from "../ui/States";
import { Time } from "../ui/Time";
import { useToast } from "../ui/Toast";
import { useMemoryChange, useMemoryHistory } from "./asking";
import css from "./memory.module.css";
import { changeName, type Memory, type Version } from "./words";

interface HistoryProps {
  memory: Memory;
  /** Whether it may be reverted. */
  changeable: boolean;
  onClose: () => void;
}

export function MemoryHistory({ memory, changeable, onClose }: HistoryProps): ReactNode {
  const query = useMemoryHistory(memory.id);
  const { revert } = useMemoryChange();
  const say = useToast();
  const go = (version: Version): void =>
    revert.mutate(
      { id: memory.id, version: version.id },
      {
        onSuccess: () => {
          say("Memory reverted.");
          onClose();
        },
      },
    );
  return (
    <Dialog title="History of this memory" onClose={onClose}>
      {revert.error && (
        <p role="alert" className={css.fault}>
          {inWords(revert.error)}
        </p>
      )}
      <Loaded query={query}>
        {({ versions }) => {
          const now = versions.find((each) => each.current)?.text;
          return (
            <ol className={css.versions} reversed>
              {[...versions].reverse().map((each) => (
                <li key={each.id} className={css.version}>
                  <Words version={each} />
                  <p className={css.meta}>
                    {each.current && <Badge tone="good">Current</Badge>}
                    <Change version={each} />
                    <span>
                      <Time value={each.created_at} />
                    </span>
                  </p>
                  {changeable && each.text !== now && (
                    <Button small busy={revert.isPending && revert.variables.version === each.id} aria-label={`Revert to version ${each.number}`} onClick={() => go(each)}>
                      Revert
                    </Button>
                  )}
                </li>
              ))}
            </ol>
          );
        }}
      </Loaded>
    </Dialog>
  );
}

/** Its text; where it replaced another, what went and what came. */
function Words({ version }: { version: Version }): ReactNode {
  if (version.difference.length === 0) {
    return (
      <p className={css.text} dir="auto">
        {version.text}
      </p>
    );
  }
  return (
    <p className={css.text} dir="auto">
      {version.difference.map((each, at) => {
        const key = `${at} ${each.text}`;
        if (each.kind === "added") return <ins key={key}>{each.text}</ins>;
        if (each.kind === "removed") return <del key={key}>{each.text}</del>;
        return <span key={key}>{each.text}</span>;
      })}
    </p>
  );
}

const MOST_SOURCES = 3;

/** Who or what changed it, and why. */
function Change({ version }: { version: Version }): ReactNode {
  const me = useMe();
  const entities = useEntities();
  const who = version.by_id === me.id ? "you" : entities.data?.find((each) => each.id === version.by_id)?.name;
  return (
    <>
      <span>
        {changeName(version.kind)}
        {version.by_id !== null && ` by ${who ?? "someone who has left"}`}
        {version.model !== "" && ` by ${version.model}`}
      </span>
      {version.sources.length > 0 && (
        <span>
          {version.sources.slice(0, MOST_SOURCES).map((each, at) => (
            <span key={each}>
              {at > 0 && ", "}
              <Link href={`/m/${each}`} aria-label={`Message ${at + 1} of ${version.sources.length} that says it`}>
                message
              </Link>
            </span>
          ))}
          {version.sources.length > MOST_SOURCES && ` and ${version.sources.length - MOST_SOURCES} more`}
        </span>
      )}
    </>
  );
}
