import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { bytes, whole } from "../ui/amounts";
import { get, type Schemas } from "../denizen/api";
import { Loaded } from "../ui/States";
import css from "./admin.module.css";
import { Section } from "./parts";

/** How much of the database the organization uses, and how fast that grows; for whoever looks after the server, of all organizations. */
export function DatabaseSize(): ReactNode {
  const size = useQuery({ queryKey: ["size"], queryFn: ({ signal }) => readSize(signal) });
  return (
    <Section title="Database" about="Estimated once a day, files included.">
      <Loaded query={size} lines={3}>
        {(told) => (
          <>
            <Tiles told={told} />
            {told.organizations.length > 1 && <Organizations told={told} />}
          </>
        )}
      </Loaded>
    </Section>
  );
}

async function readSize(signal: AbortSignal): Promise<Schemas["SizeOut"]> {
  const own = await get("/api/organization/size", { signal });
  if (!own.may_see_all) return own;
  return get("/api/organization/size", { query: { all_organizations: true }, signal });
}

function Tiles({ told }: { told: Schemas["SizeOut"] }): ReactNode {
  const now = told.days.at(-1);
  const tiles: [string, string][] = [
    ["Your organization", bytes(told.bytes)],
    ["Growth per day", growth(told.bytes_per_day)],
    ["Messages", whole(now?.messages ?? 0)],
    ["Cycles", whole(now?.cycles ?? 0)],
  ];
  if (told.database_bytes != null) tiles.push(["Whole database", bytes(told.database_bytes)]);
  return (
    <dl className={css.tiles}>
      {tiles.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Organizations({ told }: { told: Schemas["SizeOut"] }): ReactNode {
  return (
    <div className={css.scroller} tabIndex={0} role="region" aria-label="Size of each organization">
      <table className={css.numbers}>
        <caption className="visually-hidden">Size of each organization</caption>
        <thead>
          <tr>
            <th scope="col">Organization</th>
            <th scope="col">Size</th>
            <th scope="col">Growth per day</th>
          </tr>
        </thead>
        <tbody>
          {told.organizations.map((each, at) => (
            <tr key={at}>
              <th scope="row">{each.name}</th>
              <td>{bytes(each.bytes)}</td>
              <td>{growth(each.bytes_per_day)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** `48 kB`; before the second day, a dash. */
function growth(perDay: number | null): string {
  if (perDay === null) return "–";
  return perDay < 0 ? `−${bytes(-perDay)}` : bytes(perDay);
}
