import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { get, type Reply, type Round } from "../denizen/api";
import { CopyButton } from "../ui/Code";
import { Dialog } from "../ui/Dialog";
import { Loaded } from "../ui/States";
import css from "./panel.module.css";

const ROLES: Record<string, string> = { system: "System", user: "User", assistant: "Own replies" };

/** The request that a reply answered, message by message, to the letter. */
export function ContextDialog({ round, reply, onClose }: { round: Round; reply: Reply; onClose: () => void }): ReactNode {
  const query = useQuery({
    queryKey: ["panels", round.panel, "context", round.id, reply.advisor, reply.part, reply.epoch],
    queryFn: ({ signal }) =>
      get("/api/panels/{panel_id}/rounds/{round_id}/replies/{advisor_id}/context", {
        path: { panel_id: round.panel, round_id: round.id, advisor_id: reply.advisor },
        query: { part: reply.part },
        signal,
      }),
  });
  return (
    <Dialog wide title={`Context of ${reply.name}`} onClose={onClose}>
      <Loaded query={query} lines={10}>
        {(shown) => (
          <>
            <div className={css.contextHead}>
              <p className={css.faint}>
                {shown.exact ? "Exactly as it was sent" : "Not exactly as sent: parts were edited, forgotten or answered again since"}
                {shown.model && `, to ${shown.model}`}: {shown.lines.length} messages, {shown.characters.toLocaleString()} characters.
              </p>
              <CopyButton label="Copy all" text={shown.lines.map((each) => `[${each.role}]\n${each.text}`).join("\n\n")} />
            </div>
            {shown.omitted.length > 0 && (
              <section className={css.omitted} aria-label="Left out">
                <h3>Left out</h3>
                <ul>
                  {shown.omitted.map((each) => (
                    <li key={each.reason} dir="auto">
                      {each.text}
                    </li>
                  ))}
                </ul>
              </section>
            )}
            <ol className={css.lines} aria-label="Messages">
              {shown.lines.map((each, index) => (
                <li key={index} data-role={each.role}>
                  <h3>{ROLES[each.role] ?? each.role}</h3>
                  <p dir="auto">{each.text}</p>
                </li>
              ))}
            </ol>
          </>
        )}
      </Loaded>
    </Dialog>
  );
}
