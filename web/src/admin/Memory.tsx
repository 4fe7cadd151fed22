import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, startTransition, useOptimistic, useState } from "react";
import { get, inWords, patch, type Schemas } from "../denizen/api";
import { CATEGORIES, categoryName, counted, merged } from "../memory/words";
import { Badge } from "../ui/Badge";
import { Button } from "../ui/Button";
import { CopyButton } from "../ui/Code";
import { Fault } from "../ui/Confirm";
import { Dialog } from "../ui/Dialog";
import { Checkbox } from "../ui/Field";
import { Loaded, Skeleton } from "../ui/States";
import { useToast } from "../ui/Toast";
import { useAct } from "../ui/useAct";
import css from "./admin.module.css";
import { Section } from "./parts";

type Switches = Schemas["OrganizationMemoryOut"];
type Finding = Schemas["FindingOut"];

/** What may be remembered in the organization, and what is wrong with what is. */
export default function Memory(): ReactNode {
  const switches = useQuery({ queryKey: ["organization", "memory"], queryFn: ({ signal }) => get("/api/organization/memory", { signal }) });
  const report = useQuery({ queryKey: ["memory", "report"], queryFn: ({ signal }) => get("/api/memory/report", { signal }) });
  return (
    <>
      <Section title="Memory scopes" about="Takes effect at once, for storing and for recalling. Existing memories stay until they are forgotten.">
        <Loaded query={switches} lines={8}>
          {(told) => <Form told={told} />}
        </Loaded>
      </Section>
      <Section title="Memory problems" about="Problems found in stored memories. Lists which memories, never their content, and removes nothing.">
        <Loaded query={report} lines={6}>
          {(told) => <Report told={told} />}
        </Loaded>
      </Section>
    </>
  );
}

const SWITCHES: { name: Exclude<keyof Switches, "categories" | "enabled">; label: string; hint: string }[] = [
  { name: "conversation", label: "Conversations", hint: "Shared by the members of a conversation, only in that conversation." },
  { name: "user", label: "Personal", hint: "Private to each person, used when they talk to agents alone." },
  { name: "persona", label: "Between a person and an agent", hint: "Only for the two of them." },
  { name: "organization", label: "For everyone", hint: "Published for the whole organization." },
  { name: "publish", label: "Publish for everyone", hint: "Off: nothing new is published; what was published stays." },
];

function Form({ told }: { told: Switches }): ReactNode {
  const client = useQueryClient();
  const say = useToast();
  const act = useAct();
  // Shown at once, and taken back if the server refuses.
  const [shown, show] = useOptimistic(told, (now, body: Partial<Switches>): Switches => ({ ...now, ...body }));
  const change = (body: Partial<Switches>): void =>
    startTransition(async () => {
      show(body);
      await act.run(async () => {
        try {
          await patch("/api/organization/memory", { body });
          say("Saved.");
        } finally {
          await client.invalidateQueries({ queryKey: ["organization", "memory"] });
        }
      });
    });
  const published = (category: (typeof CATEGORIES)[number], on: boolean): void =>
    change({ categories: CATEGORIES.filter((each) => (each === category ? on : shown.categories.includes(each))) });
  return (
    <div className={css.form}>
      <Checkbox label="Long-term memory" hint="Off: nothing is stored and nothing is recalled." checked={shown.enabled} onChange={(event) => change({ enabled: event.target.checked })} />
      <fieldset className={css.switches} disabled={!shown.enabled}>
        <legend className={css.switchesTitle}>Scopes</legend>
        {SWITCHES.map(({ name, label, hint }) => (
          <Checkbox key={name} label={label} hint={hint} checked={shown[name]} disabled={name === "publish" && !shown.organization} onChange={(event) => change({ [name]: event.target.checked })} />
        ))}
      </fieldset>
      <fieldset className={css.switches} disabled={!shown.enabled || !shown.organization || !shown.publish}>
        <legend className={css.switchesTitle}>What can be published for everyone</legend>
        <div className={css.pair}>
          {CATEGORIES.map((each) => (
            <Checkbox key={each} label={categoryName(each)} checked={shown.categories.includes(each)} onChange={(event) => published(each, event.target.checked)} />
          ))}
        </div>
      </fieldset>
      <Fault error={act.error} />
    </div>
  );
}

const SCOPES: [string, string][] = [
  ["conversation", "Conversations"],
  ["user", "Personal"],
  ["persona", "Person and agent"],
  ["organization", "For everyone"],
];
const PROBLEMS: Record<Finding["problem"], { name: string; tone: "warn" | "plain" }> = {
  contradiction: { name: "contradiction", tone: "warn" },
  duplicate: { name: "double", tone: "plain" },
  junk: { name: "junk", tone: "plain" },
  "never used": { name: "never used", tone: "plain" },
};
const SHOWN = 30;

function Report({ told }: { told: Schemas["ReportOut"] }): ReactNode {
  const [all, setAll] = useState(false);
  const [looked, setLooked] = useState<Finding | null>(null);
  const found = merged(told.findings);
  const findings = all ? found : found.slice(0, SHOWN);
  return (
    <>
      <dl className={css.tiles}>
        {SCOPES.map(([scope, label]) => (
          <div key={scope}>
            <dt>{label}</dt>
            <dd>{(told.counts[scope] ?? 0).toLocaleString()}</dd>
          </div>
        ))}
        <div>
          <dt>Outdated</dt>
          <dd>{told.superseded.toLocaleString()}</dd>
        </div>
      </dl>
      {found.length === 0 ? (
        <p className={css.faint}>No problems found.</p>
      ) : (
        <ul className={css.rows} aria-label="Findings">
          {findings.map((each) => (
            <li key={`${each.problem} ${each.scope} ${each.memories[0]} ${each.memories[1]}`} className={css.row}>
              <span className={css.words}>
                <span className={css.name}>{each.why.charAt(0).toUpperCase() + each.why.slice(1)}</span>
                <span className={css.facts}>
                  <span>{SCOPES.find(([scope]) => scope === each.scope)?.[1] ?? each.scope}</span>
                  <span>{counted(each.memories.length, "memory", "memories")}</span>
                </span>
              </span>
              <Badge tone={PROBLEMS[each.problem].tone}>{PROBLEMS[each.problem].name}</Badge>
              <Button small variant="quiet" onClick={() => setLooked(each)} aria-label={`Look at this ${PROBLEMS[each.problem].name}`}>
                Look
              </Button>
            </li>
          ))}
        </ul>
      )}
      {!all && found.length > SHOWN && (
        <div>
          <Button small onClick={() => setAll(true)}>
            Show all {found.length.toLocaleString()}
          </Button>
        </div>
      )}
      {looked && <Look finding={looked} onClose={() => setLooked(null)} />}
    </>
  );
}

/** The memories of a finding: those that the admin may see, and of the others their ids. */
function Look({ finding, onClose }: { finding: Finding; onClose: () => void }): ReactNode {
  return (
    <Dialog title={finding.why.charAt(0).toUpperCase() + finding.why.slice(1)} onClose={onClose}>
      <ul className={css.rows} aria-label="Memories">
        {finding.memories.slice(0, SHOWN).map((id) => (
          <One key={id} id={id} />
        ))}
      </ul>
      {finding.memories.length > SHOWN && <p className={css.faint}>And {(finding.memories.length - SHOWN).toLocaleString()} more.</p>}
      <p className={css.about}>
        Its owner can forget it under Memory. On the server, use <code>denizen memory forget</code> with the ID.
      </p>
    </Dialog>
  );
}

function One({ id }: { id: string }): ReactNode {
  const memory = useQuery({ queryKey: ["memory", "one", id], queryFn: ({ signal }) => get("/api/memory/{memory_id}", { path: { memory_id: id }, signal }) });
  return (
    <li className={css.row}>
      <span className={css.words}>
        {memory.data ? (
          <span className={css.name}>{memory.data.text}</span>
        ) : memory.error ? (
          <span className={css.faint}>{"status" in memory.error && memory.error.status === 404 ? "You cannot read this memory." : inWords(memory.error)}</span>
        ) : (
          <Skeleton lines={1} />
        )}
        <code className={css.faint}>{id}</code>
      </span>
      <CopyButton text={id} label="Copy ID" />
    </li>
  );
}
