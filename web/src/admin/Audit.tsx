import { useInfiniteQuery } from "@tanstack/react-query";
import { Download } from "lucide-react";
import { type ReactNode, useState } from "react";
import { get, type Schemas } from "../denizen/api";
import { useDownload } from "../denizen/download";
import { useEntities } from "../denizen/hooks";
import { Badge } from "../ui/Badge";
import { Button } from "../ui/Button";
import { Select, TextField } from "../ui/Field";
import { ShowMore } from "../ui/ShowMore";
import { Empty, Loaded } from "../ui/States";
import { Time } from "../ui/Time";
import css from "./admin.module.css";
import { Section } from "./parts";

type Entry = Schemas["AuditEntry"];
type Kind = Schemas["AuditPage"]["kinds"][number];

interface Filter {
  by: string;
  kind: Kind | "";
  since: string;
  until: string;
}

const NONE: Filter = { by: "", kind: "", since: "", until: "" };
const KINDS: Record<Kind, string> = {
  people: "People",
  tokens: "Tokens and sign-ins",
  keys: "Keys",
  webhooks: "Webhooks",
  bridges: "Bridges",
  agents: "Agents",
  budgets: "Budgets",
  settings: "Settings",
  exports: "Exports",
  forgetting: "Forgetting",
  "private spaces": "Private spaces",
  approvals: "Approvals",
};

/** Who changed what, and when: searched by person, kind and time. */
export default function Audit(): ReactNode {
  const entities = useEntities();
  const [filter, setFilter] = useState<Filter>(NONE);
  const query = asked(filter);
  const download = useDownload();
  const pages = useInfiniteQuery({
    queryKey: ["audit", query],
    queryFn: ({ pageParam, signal }) => get("/api/audit", { query: { ...query, before: pageParam ?? undefined, limit: 50 }, signal }),
    initialPageParam: null as number | null,
    getNextPageParam: (page) => page.next,
  });
  const set = (change: Partial<Filter>): void => setFilter({ ...filter, ...change });
  const filtered = Object.values(filter).some(Boolean);
  return (
    <Section
      title="Audit log"
      about="Who changed roles, tokens, keys, agents, budgets and settings, exported or had something forgotten, or opened a private space."
      action={
        <Button small icon={<Download size={15} />} onClick={() => download("/api/audit/export", { query }, "audit.jsonl")}>
          Export
        </Button>
      }
    >
      <div className={css.bar} role="search" aria-label="Filter the audit log">
        <Select label="Person" value={filter.by} onChange={(event) => set({ by: event.target.value })}>
          <option value="">Everyone</option>
          {entities.data
            ?.filter((each) => each.kind === "human")
            .map((each) => (
              <option key={each.id} value={each.id}>
                {each.name}
              </option>
            ))}
        </Select>
        <Select label="Kind" value={filter.kind} onChange={(event) => set({ kind: event.target.value as Kind | "" })}>
          <option value="">Every kind</option>
          {(Object.keys(KINDS) as Kind[]).map((each) => (
            <option key={each} value={each}>
              {KINDS[each]}
            </option>
          ))}
        </Select>
        <TextField label="From" type="date" value={filter.since} onChange={(event) => set({ since: event.target.value })} />
        <TextField label="To" type="date" value={filter.until} onChange={(event) => set({ until: event.target.value })} />
        {filtered && (
          <Button small variant="quiet" onClick={() => setFilter(NONE)}>
            Clear filters
          </Button>
        )}
      </div>
      <Loaded query={{ ...pages, data: pages.data }} lines={8}>
        {({ pages: read }) => {
          const all = read.flatMap((page) => page.entries);
          if (all.length === 0) return <Empty title={filtered ? "No changes match these filters." : "No changes yet."} />;
          return (
            <>
              <ol className={css.rows} aria-label="Changes">
                {all.map((each) => (
                  <Row key={each.number} entry={each} />
                ))}
              </ol>
              <ShowMore small pages={pages} />
            </>
          );
        }}
      </Loaded>
    </Section>
  );
}

function Row({ entry }: { entry: Entry }): ReactNode {
  const details = facts(entry);
  return (
    <li className={css.row}>
      <div className={css.words}>
        <span>
          <strong>{entry.by?.name ?? (entry.action === "failed_sign_in" ? "Somebody" : "Somebody on the server")}</strong> {entry.what}
          {entry.kind === "keys" && <> {String(entry.detail.name)}</>}
          {entry.kind !== "keys" && entry.subject && entry.subject.id !== entry.by?.id && <> {entry.subject.name}</>}
        </span>
        {entry.reason && <q className={css.reason}>{entry.reason}</q>}
        <span className={css.facts}>
          <Time value={entry.at} />
          {entry.by?.handle && <span>@{entry.by.handle}</span>}
          {details.map((each) => (
            <span key={each}>{each}</span>
          ))}
        </span>
      </div>
      <div className={css.badges}>
        <Badge>{entry.kind}</Badge>
      </div>
    </li>
  );
}

const HIDDEN = new Set(["opening", "token", "webhook", "receipt", "fork", "renamed", "until"]);

/** The details that people read: ids of rows are not among them. */
function facts({ kind, detail }: Entry): string[] {
  return Object.entries(detail)
    .filter(([name, value]) => !HIDDEN.has(name) && value !== null && value !== "" && !(kind === "keys" && name === "name"))
    .map(([name, value]) => `${name.replaceAll("_", " ")}: ${name === "role" && Array.isArray(value) ? value.join(" → ") : said(value)}`);
}

function said(value: unknown): string {
  if (Array.isArray(value)) return value.map(said).join(", ") || "none";
  if (typeof value === "object" && value !== null) {
    const limits = Object.entries(value).map(([name, each]) => `${name.replaceAll("_", " ")} ${said(each)}`);
    return limits.join(", ") || "no limit";
  }
  return typeof value === "number" ? value.toLocaleString() : String(value);
}

/** What the server is asked: whole days in the reader's zone. */
function asked({ by, kind, since, until }: Filter): { by?: string; kind?: Kind; since?: string; until?: string } {
  return {
    ...(by && { by }),
    ...(kind && { kind }),
    ...(since && { since: new Date(`${since}T00:00:00`).toISOString() }),
    ...(until && { until: dayAfter(until) }),
  };
}

function dayAfter(day: string): string {
  const at = new Date(`${day}T00:00:00`);
  at.setDate(at.getDate() + 1);
  return at.toISOString();
}
