import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Download } from "lucide-react";
import { lazy, type ReactNode, Suspense, useMemo, useState } from "react";
import { cost, daysAgo, monthStart, percent, short } from "../ui/amounts";
import { get, type Schemas } from "../denizen/api";
import { save } from "../denizen/download";
import { Button } from "../ui/Button";
import { Select } from "../ui/Field";
import { Loaded } from "../ui/States";
import { Tabs } from "../ui/Tabs";
import css from "./admin.module.css";
import { Section } from "./parts";
import { DatabaseSize } from "./DatabaseSize";
import { StoredFiles } from "./StoredFiles";
import { csv, type Measure, seriesOf } from "./series";

const Chart = lazy(() => import("./Chart"));
type By = "day" | "agent" | "model";
type Told = Schemas["UsageOut"];

const RANGES: { id: string; label: string; since: () => string }[] = [
  { id: "7", label: "Last 7 days", since: () => daysAgo(6) },
  { id: "30", label: "Last 30 days", since: () => daysAgo(29) },
  { id: "month", label: "This month", since: monthStart },
  { id: "90", label: "Last 90 days", since: () => daysAgo(89) },
  { id: "365", label: "Last year", since: () => daysAgo(364) },
];
const BY: { id: By; label: string }[] = [
  { id: "day", label: "By day" },
  { id: "agent", label: "By agent" },
  { id: "model", label: "By model" },
];

/** What agents have used, drawn and told, and the room that files take. */
export default function Usage(): ReactNode {
  const [by, setBy] = useState<By>("day");
  const [range, setRange] = useState("30");
  const [measure, setMeasure] = useState<Measure>("dollars");
  const since = RANGES.find((each) => each.id === range)!.since();
  const usage = useQuery({
    queryKey: ["usage", since, by],
    queryFn: ({ signal }) => get("/api/usage", { query: { since, until: daysAgo(0), by, limit: 50 }, signal }),
    placeholderData: keepPreviousData,
  });
  // Files come below what grows while it loads, and would move with it.
  return (
    <>
      <Section
        title="Usage"
        about="Days are in UTC. Costs appear only for models with a known price."
        action={
          <Button small icon={<Download size={15} />} disabled={!usage.data} onClick={() => usage.data && saveTable(usage.data)}>
            CSV
          </Button>
        }
      >
        <div className={css.bar}>
          <Select label="Time" value={range} onChange={(event) => setRange(event.target.value)}>
            {RANGES.map((each) => (
              <option key={each.id} value={each.id}>
                {each.label}
              </option>
            ))}
          </Select>
          <Select label="Chart" value={measure} onChange={(event) => setMeasure(event.target.value as Measure)}>
            <option value="dollars">Dollars</option>
            <option value="tokens">Tokens</option>
            <option value="cached">Cached tokens</option>
            <option value="calls">Model calls</option>
          </Select>
        </div>
        <Tabs label="Group by" tabs={BY} current={by} onChange={setBy}>
          <div className={css.usage}>
            <Loaded query={usage} lines={14}>
              {(told) => <Shown told={told} measure={measure} />}
            </Loaded>
          </div>
        </Tabs>
      </Section>
      {!usage.isPending && <StoredFiles />}
      {!usage.isPending && <DatabaseSize />}
    </>
  );
}

function Shown({ told, measure }: { told: Told; measure: Measure }): ReactNode {
  const series = useMemo(() => seriesOf(told, measure), [told, measure]);
  const days = useMemo(() => told.days.map((each) => each.day), [told]);
  return (
    <>
      <Tiles total={told.total} />
      <Suspense fallback={<div className={css.chartPlace} />}>
        <Chart days={days} series={series} measure={measure} />
      </Suspense>
      <Numbers told={told} />
    </>
  );
}

function Tiles({ total }: { total: Told["total"] }): ReactNode {
  const tiles: [string, string, string?][] = [
    ["Cost", cost(total)],
    ["Model calls", total.calls.toLocaleString()],
    ["Tokens read", short(total.input_tokens), total.input_tokens.toLocaleString()],
    ["Tokens written", short(total.output_tokens), total.output_tokens.toLocaleString()],
    ["Cached", percent(total.cached_share), "Share of input tokens served from the provider's cache"],
  ];
  return (
    <dl className={css.tiles}>
      {tiles.map(([name, value, title]) => (
        <div key={name} title={title}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** The same in numbers: for whoever cannot see the picture, or wants to know exactly. */
function Numbers({ told }: { told: Told }): ReactNode {
  const rows =
    told.by === "day" ? [...told.days].reverse().map((each) => ({ ...each, key: each.day, name: each.day })) : told.groups;
  const used = rows.filter((each) => each.calls > 0);
  if (used.length === 0) return <p className={css.faint}>No usage in this period.</p>;
  return (
    <div className={css.scroller} tabIndex={0} role="region" aria-label="Numbers">
      <table className={css.numbers}>
        <caption className="visually-hidden">
          Usage from {told.since} to {told.until}, by {told.by}
        </caption>
        <thead>
          <tr>
            <th scope="col">{told.by === "day" ? "Day" : told.by === "agent" ? "Agent" : "Model"}</th>
            <th scope="col">Calls</th>
            <th scope="col">Read</th>
            <th scope="col">Written</th>
            <th scope="col">Cached</th>
            <th scope="col">Cost</th>
          </tr>
        </thead>
        <tbody>
          {used.map((each) => (
            <tr key={each.key}>
              <th scope="row">{each.name}</th>
              <td>{each.calls.toLocaleString()}</td>
              <td>{each.input_tokens.toLocaleString()}</td>
              <td>{each.output_tokens.toLocaleString()}</td>
              <td>{percent(each.cached_share)}</td>
              <td>{cost(each)}</td>
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">Together{told.others > 0 && `, with ${told.others} more`}</th>
            <td>{told.total.calls.toLocaleString()}</td>
            <td>{told.total.input_tokens.toLocaleString()}</td>
            <td>{told.total.output_tokens.toLocaleString()}</td>
            <td>{percent(told.total.cached_share)}</td>
            <td>{cost(told.total)}</td>
          </tr>
        </tfoot>
      </table>
    </div>
  );
}

function saveTable(told: Told): void {
  save(new Blob([csv(told, told.by)], { type: "text/csv" }), `usage ${told.since} to ${told.until} by ${told.by}.csv`);
}
