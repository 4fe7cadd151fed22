import { type ReactNode, useState } from "react";
import type { Schemas } from "../denizen/api";
import { whole } from "../ui/amounts";
import { Button } from "../ui/Button";
import { Code } from "../ui/Code";
import css from "./mind.module.css";
import { Arguments, Fold, Words } from "./parts";
import { json, type Part, partsOf, type Role } from "./transcript";

const ROLES: Record<Role, string> = {
  self: "System",
  user: "User",
  model: "Model",
  thinking: "Model, thinking",
  call: "Model calls",
  result: "Result of",
  other: "Other",
};
/** Of a long request the end is what was new: it is open. */
const OPEN_AT_END = 1;

/** What the model was sent, to the letter, message by message; and the same as JSON. */
export function ExactRequest({ request }: { request: Schemas["RequestOut"] }): ReactNode {
  const [raw, setRaw] = useState(false);
  const parts = request.messages.flatMap((message) => partsOf(message));
  return (
    <div className={css.exact}>
      <div className={css.sectionHead}>
        <p className={css.meta}>
          <span>{request.model}</span>
          <span>about {whole(request.tokens)} tokens</span>
          <span>{parts.length} messages</span>
          <span>{request.tools?.length ?? "unknown"} tools</span>
          {request.outside && <span>{request.outside}</span>}
        </p>
        <Button small variant="quiet" onClick={() => setRaw(!raw)}>
          {raw ? "As a transcript" : "Raw JSON"}
        </Button>
      </div>
      {raw ? (
        <Code text={json(request)} language="json" label="The request" />
      ) : (
        <>
          <ol className={css.transcript}>
            {parts.map((part, index) => (
              <li key={index}>
                <PartView part={part} open={index >= parts.length - OPEN_AT_END} />
              </li>
            ))}
          </ol>
          {request.tools && <Tools tools={request.tools} />}
          <Fold title="Settings">
            <Code text={json(request.settings)} language="json" label="Settings" />
          </Fold>
        </>
      )}
    </div>
  );
}

function PartView({ part, open }: { part: Part; open: boolean }): ReactNode {
  const beginning = part.role === "call" ? json(part.arguments) : part.text;
  return (
    <Fold
      open={open}
      className={css.part}
      title={
        <>
          <span className={css.role} data-role={part.role}>
            {ROLES[part.role]}
            {part.tool && ` ${part.tool}`}
          </span>{" "}
          <span className={css.preview}>{beginning.replaceAll(/\s+/g, " ").slice(0, 80)}</span>
        </>
      }
    >
      {part.role === "call" ? <Arguments value={part.arguments} /> : <Words text={part.text} />}
    </Fold>
  );
}

/** The tools that a request offered, by name, with what they are for. */
export function Tools({ tools }: { tools: unknown[] }): ReactNode {
  return (
    <Fold title={`Tools (${tools.length})`}>
      <dl className={css.tools}>
        {tools.map((tool, index) => {
          const { name, description } = tool as { name?: string; description?: string };
          return (
            <div key={index}>
              <dt>
                <code>{name}</code>
              </dt>
              <dd>{description}</dd>
            </div>
          );
        })}
      </dl>
    </Fold>
  );
}
